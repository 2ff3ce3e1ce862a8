#include "model/train/data/chat_examples.hpp"

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/ascii.hpp"
#include "base/error.hpp"
#include "base/to_size.hpp"
#include "model/formats/json_input.hpp"
#include "model/text/chat_format.hpp"
#include "model/text/chat_messages.hpp"
#include "model/text/model_text.hpp"
#include "model/train/data/example_parts.hpp"

namespace troupe::detail {
namespace {

using nlohmann::ordered_json;

constexpr std::size_t most_messages = 10'000;  // as a request may have

/// Takes the weight out of a message: 0, 1 or null, which some programs write for what is not set.
bool take_weight(ordered_json& message) {
  const auto found = message.find("weight");
  if (found == message.end()) return true;
  const bool valid = found->is_null() || (found->is_number() && (*found == 0 || *found == 1));
  if (!valid) refuse("a message's \"weight\" should be 0 or 1");
  const bool learned = *found != 0;
  message.erase(found);
  return learned;
}

/// Of a tool or of a call.
bool names_function(const ordered_json& of) {
  if (!of.is_object() || !of.contains("function") || !of["function"].is_object()) return false;
  const auto name = of["function"].find("name");
  return name != of["function"].end() && name->is_string() && !is_blank(name->get_ref<const std::string&>());
}

/// Serving passes on what a client sends; but what an answer of the model had cut short is nothing to learn.
void check_arguments(const ordered_json& messages) {
  for (std::size_t i = 0; i < messages.size(); ++i) {
    if (!messages[i].contains("tool_calls")) continue;
    for (const ordered_json& call : messages[i]["tool_calls"]) {
      if (!names_function(call)) refuse("messages[{}].tool_calls: a call should have a function with a name", i);
      if (!call["function"]["arguments"].is_object())
        refuse("messages[{}].tool_calls: the arguments of a call should be a JSON object", i);
    }
  }
}

/// Some programs write them as a text, since tables of theirs have no column of objects. Null where there are none.
ordered_json tools_of(const ordered_json& line) {
  const auto found = line.find("tools");
  if (found == line.end()) return {};
  ordered_json tools = *found;
  if (tools.is_string()) {
    const auto text = tools.get<std::string>();
    tools = is_blank(text) ? ordered_json() : parse_json_as<ordered_json>(text, "\"tools\"");
  }
  if (tools.is_null() || tools == ordered_json::array()) return {};
  if (!tools.is_array() || !std::ranges::all_of(tools, names_function))
    refuse("\"tools\" should be a list of {{\"type\": \"function\", \"function\": {{\"name\": …}}}}");
  return tools;
}

struct chat {
  ordered_json messages = ordered_json::array();
  ordered_json tools;
  std::vector<std::size_t> learned;  // indices of the assistant's turns that count
};

chat read_chat(const ordered_json& line) {
  const auto list = line.find("messages");
  if (list == line.end() || !list->is_array() || list->empty()) refuse("\"messages\" should be a list of messages");
  if (list->size() > most_messages) refuse("has {} messages: use at most {}", list->size(), most_messages);
  if (const auto older = line.find("functions"); older != line.end() && !older->is_null())
    refuse("\"functions\" is the older form: use \"tools\"");
  chat read;
  for (ordered_json message : *list) {
    if (!message.is_object() || !message.contains("role") || !message["role"].is_string())
      refuse("a message has no \"role\"");
    const bool counts = take_weight(message);
    if (message["role"] == "assistant" && counts) read.learned.push_back(read.messages.size());
    read.messages.push_back(std::move(message));
  }
  prepare_messages(read.messages);
  check_arguments(read.messages);
  if (read.learned.empty())
    refuse("no message is to be learned: answers have the role \"assistant\", and no weight of 0");
  read.tools = tools_of(line);
  return read;
}

/// Of the first `count` messages; `prompt`: up to where the assistant's answer begins.
std::string text_of(const chat& from, std::size_t count, bool prompt, const data_format& format) {
  ordered_json messages = ordered_json::array();
  for (std::size_t i = 0; i < count; ++i) messages.push_back(from.messages[i]);
  return format.chat->render_as_can_be({messages, from.tools, prompt});
}

/// Of all messages before a turn, up to where its answer begins.
std::string prompt_before(const chat& from, std::size_t turn, const data_format& format) {
  return text_of(from, turn, true, format);
}

/// Of all messages before a turn, and its own.
std::string text_through(const chat& from, std::size_t turn, const data_format& format) {
  return text_of(from, turn + 1, false, format);
}

/// Whether a turn is written otherwise than it would be without its calls, or could not be written without them.
bool writes_calls(chat from, std::size_t turn, const std::string& written, const data_format& format) {
  if (from.messages[turn].erase("tool_calls") == 0) return true;
  try {
    return text_through(from, turn, format) != written;
  } catch (const input_error&) {
    return true;
  }
}

/// Whether the template writes all that was said before the last answer: many know no system message, or no tool's.
/// Each message is marked, and its mark looked for.
bool writes_messages(chat from, const data_format& format) {
  constexpr std::string_view mark = "[end of message ";
  std::size_t marked = 0;
  for (std::size_t i = 0; i < from.learned.back(); ++i) {
    ordered_json& message = from.messages[i];
    if (message["role"] == "assistant" || message["content"] == "") continue;
    message["content"].get_ref<std::string&>() += fmt::format("{}{}]", mark, i);
    ++marked;
  }
  std::set<std::string_view> seen;
  try {
    const std::string text = prompt_before(from, from.learned.back(), format);
    for (std::size_t at = text.find(mark); at != text.npos; at = text.find(mark, at + 1))
      seen.insert(std::string_view(text).substr(at, text.find(']', at) - at));
    return seen.size() >= marked;
  } catch (const input_error&) {
    return true;  // the messages themselves were written
  }
}

/// Stands behind the message before an answer, to find what is written from there on.
constexpr std::string_view answer_mark = "[the answer follows]";

std::optional<std::string> behind_mark(const std::string& text) {
  const std::size_t at = text.rfind(answer_mark);
  if (at == text.npos) return {};
  return text.substr(at + answer_mark.size());
}

/// What a prompt ends with since an answer is to follow; nothing where that shows no text. Of both: behind the mark.
std::optional<std::string> beginning_of_answer(const std::string& prompt, const std::string& messages_alone) {
  if (!prompt.starts_with(messages_alone)) return {};
  std::string beginning = prompt.substr(messages_alone.size());
  return is_blank(beginning) ? std::nullopt : std::optional(std::move(beginning));
}

/// Behind the message before it. Where the template closes that otherwise once the answer is there, as Hermes' does
/// with a tool's, it is behind what begins an answer.
std::optional<std::string> answer_in(const std::string& written, const std::string& prompt, const chat& marked,
                                     std::size_t turn, const data_format& format) {
  if (written.starts_with(prompt)) return written.substr(prompt.size());
  const auto alone = behind_mark(text_of(marked, turn, false, format));
  const auto beginning = alone ? beginning_of_answer(prompt, *alone) : std::nullopt;
  const std::size_t at = beginning ? written.find(*beginning) : written.npos;
  if (at == written.npos) return {};
  return written.substr(at + beginning->size());
}

/// Some templates write the messages before an answer otherwise once the answer is there. Then this is what follows the
/// prompt, if the template goes on behind the message before as the prompt does.
std::string answer_behind_prompt(chat from, std::size_t turn, const data_format& format) {
  if (turn > 0 && from.messages[turn - 1]["content"].is_string())
    from.messages[turn - 1]["content"].get_ref<std::string&>() += answer_mark;
  const auto prompt = behind_mark(prompt_before(from, turn, format));
  const auto written = behind_mark(text_through(from, turn, format));
  const auto answer = prompt && written ? answer_in(*written, *prompt, from, turn, format) : std::nullopt;
  if (!answer)
    refuse(
        "the chat template does not write the answer behind the prompt that serving uses: use lines with "
        "\"prompt\" and \"completion\"");
  return *answer;
}

std::vector<token_id> tokens_of(const std::string& text, const data_format& format) {
  return prompt_of_chat(*format.tokens, text);
}

/// A turn behind its prompt.
struct written_turn {
  std::vector<token_id> tokens;
  std::size_t first_learned = 0;
  bool goes_on = true;  // the template itself writes it behind that prompt
};

/// Nothing where the prompt alone is longer than a row. `all`: the text of the whole chat.
std::optional<written_turn> write_turn(const chat& from, std::size_t turn, const std::string& all,
                                       const data_format& format) {
  const std::string prompt = prompt_before(from, turn, format);
  const auto before = tokens_of(prompt, format);
  if (before.size() > to_size(format.row_length + 1)) return {};
  const std::string written = turn + 1 == from.messages.size() ? all : text_through(from, turn, format);
  if (!writes_calls(from, turn, written, format))
    refuse(
        "messages[{}]: the chat template does not write its tool_calls, so they cannot be learned: leave the line out, "
        "or write it as \"prompt\" and \"completion\"",
        turn);
  const bool goes_on = written.starts_with(prompt);
  auto tokens = tokens_of(goes_on ? written : prompt + answer_behind_prompt(from, turn, format), format);
  const std::size_t first = shared_beginning(before, tokens);
  return written_turn{std::move(tokens), first, goes_on};
}

/// Each takes the time of all before it, so they end with the first that begins beyond a row.
std::vector<written_turn> write_turns(const chat& from, const std::string& all, const data_format& format) {
  std::vector<written_turn> turns;
  for (const std::size_t each : from.learned) {
    auto turn = write_turn(from, each, all, format);
    if (!turn) break;
    turns.push_back(*std::move(turn));
  }
  return turns;
}

/// Whether the whole chat has the turn as it was written when it was the last. A last line break may have merged with
/// what follows.
bool has_turn(const std::vector<token_id>& whole, const written_turn& turn) {
  return turn.goes_on && shared_beginning(turn.tokens, whole) + 1 >= turn.tokens.size();
}

/// Whether what is learned of it has a token that ends answers.
bool ends_answer(const written_turn& turn, const data_format& format) {
  const auto learned = turn.tokens.begin() + static_cast<std::ptrdiff_t>(turn.first_learned);
  return std::find_first_of(learned, turn.tokens.end(), format.end_tokens.begin(), format.end_tokens.end()) !=
         turn.tokens.end();
}

/// Whoever learns such a chat goes on until something else stops the answer. Not where no token ends answers at all.
bool lacks_ends(const std::vector<written_turn>& turns, const data_format& format) {
  return !turns.empty() && !format.end_tokens.empty() &&
         std::ranges::none_of(turns, [&](const written_turn& turn) { return ends_answer(turn, format); });
}

training_example learned_together(const std::vector<written_turn>& turns, std::vector<token_id> whole) {
  std::vector<std::uint8_t> learned(whole.size(), 0);
  for (const written_turn& turn : turns) {
    const std::size_t end = shared_beginning(turn.tokens, whole);
    for (std::size_t i = turn.first_learned; i < end; ++i) learned[i] = 1;
  }
  return {std::move(whole), std::move(learned)};
}

}  // namespace

line_examples chat_examples(const ordered_json& line, const data_format& format) {
  if (!format.chat) refuse("the model has no chat template: use lines with \"prompt\" and \"completion\"");
  const chat from = read_chat(line);
  const std::string all = text_through(from, from.messages.size() - 1, format);
  auto whole = tokens_of(all, format);
  auto turns = write_turns(from, all, format);
  line_examples made;
  made.losses = {
      .unwritten = writes_messages(from, format) ? 0 : 1, .unended = lacks_ends(turns, format) ? 1 : 0, .chats = 1};
  if (std::ranges::all_of(turns, [&](const written_turn& turn) { return has_turn(whole, turn); })) {
    add_to(made, learned_together(turns, std::move(whole)), format);
    return made;
  }
  for (written_turn& turn : turns) add_to(made, with_learned(std::move(turn.tokens), turn.first_learned), format);
  made.losses.shortened += static_cast<std::int64_t>(from.learned.size() - turns.size());
  return made;
}

}  // namespace troupe::detail
