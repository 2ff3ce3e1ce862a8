#include "model/engine/text/chat_format.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <span>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/field_error.hpp"
#include "model/chat/chat_template.hpp"
#include "model/engine/text/chat_messages.hpp"
#include "model/formats/json_input.hpp"

namespace troupe {
namespace {

using json = nlohmann::ordered_json;

constexpr std::size_t most_variables = 1000;

chat_sources sources_of(const std::filesystem::path& model) {
  auto found = find_chat_sources(model);
  if (!found) refuse("{}: has no chat template: give the prompt as plain text", model.string());
  return std::move(*found);
}

json parsed(const std::string& text, const char* field) {
  return detail::parse_json_as<json>(text, field, {.depth = 64});
}

constexpr const char* variables_field = "chat_template_kwargs";

json parsed_variables(const std::string& text) {
  if (text.empty()) return json::object();
  json further;
  try {
    further = parsed(text, variables_field);
  } catch (const input_error& error) {
    refuse_field(variables_field, error.what());
  }
  if (!further.is_object()) refuse_field(variables_field, "chat_template_kwargs: a JSON object is expected");
  if (further.size() > most_variables)
    refuse_field(variables_field,
                 fmt::format("chat_template_kwargs: has {} names: use at most {}", further.size(), most_variables));
  return further;
}

/// The usual ones, and those that the template tells apart by their names, as Llama's do with "ipython".
bool is_role(const std::string& role, const std::string& source) {
  constexpr std::array usual{"system", "developer", "user", "assistant", "tool", "function"};
  return std::ranges::find(usual, role) != usual.end() || source.find("'" + role + "'") != source.npos ||
         source.find('"' + role + '"') != source.npos;
}

/// Many templates leave out what has another role, as if nobody had said it.
void check_roles(const json& messages, const std::string& source) {
  constexpr std::size_t longest_shown = 40;
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const json& role = messages[i]["role"];
    const auto& text = role.get_ref<const std::string&>();
    if (!is_role(text, source))
      refuse("messages[{}].role is {}: use system, user, assistant or tool", i,
             text.size() > longest_shown ? "a long text" : role.dump());
  }
}

/// DeepSeek's templates want calls as the API has them: they know a message of calls by its lack of content, and put
/// arguments together as text. A template that takes an empty text for none needs no null, and may measure the text.
void write_calls_for(const std::string& source, json& messages) {
  const bool wants_no_content =
      source.find("['content'] is none") != source.npos && source.find("['content'] == ''") == source.npos;
  const bool wants_text = source.find("['arguments'] +") != source.npos;
  if (!wants_no_content && !wants_text) return;
  for (json& message : messages) {
    if (!message.contains("tool_calls")) continue;
    if (json& content = message["content"]; wants_no_content && content == "") content = nullptr;
    for (json& call : message["tool_calls"])
      if (json& arguments = call["function"]["arguments"]; wants_text && arguments.is_structured())
        arguments = arguments.dump();
  }
}

bool is_result(const json& message) {
  return message["role"] == "tool" || message["role"] == "ipython";
}

/// The templates of DeepSeek-R1 and its distillations leave out calls that have a text: those become a message behind
/// it, if they have results. Later ones write both.
void part_texts_for(const std::string& source, json& messages) {
  if (source.find("and message['content'] is none") == source.npos) return;
  json parted = json::array();
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const bool has_result = i + 1 < messages.size() && is_result(messages[i + 1]);
    json& message = parted.emplace_back(std::move(messages[i]));
    if (!has_result || !message.contains("tool_calls") || message["content"] == "") continue;
    json calls{{"role", message["role"]}, {"content", ""}, {"tool_calls", std::move(message["tool_calls"])}};
    message.erase("tool_calls");
    parted.push_back(std::move(calls));
  }
  messages = std::move(parted);
}

/// Puts each call of a message into one of its own, with its result behind it. `results` may have further ones.
void add_calls_one_by_one(json& to, json message, std::span<json> results) {
  const auto id_of = [](const json& object, const char* key) {
    const auto id = object.is_object() ? object.find(key) : object.end();
    return id != object.end() && id->is_string() ? id->get<std::string>() : "";
  };
  std::multimap<std::string, json*> left;
  for (json& each : results) left.emplace(id_of(each, "tool_call_id"), &each);
  const json calls = std::exchange(message["tool_calls"], json::array());
  for (const json& call : calls) {
    message["tool_calls"] = json::array({call});
    to.push_back(message);
    message = json{{"role", message["role"]}, {"content", ""}};
    const auto result = left.find(id_of(call, "id"));
    if (result == left.end()) continue;
    to.push_back(std::exchange(*result->second, nullptr));
    left.erase(result);
  }
  for (json& each : results)
    if (!each.is_null()) to.push_back(std::move(each));
}

/// Llama's templates refuse messages of several calls, which the model's answers may have. Without results, as training
/// asks for an answer alone, such a message stays as it is: no model would write several.
void part_calls_for(const std::string& source, json& messages) {
  if (source.find("only supports single tool-calls") == source.npos) return;
  json parted = json::array();
  auto& all = messages.get_ref<json::array_t&>();
  for (auto next = all.begin(); next != all.end();) {
    json& message = *next++;
    if (!message.contains("tool_calls") || message["tool_calls"].size() < 2) {
      parted.push_back(std::move(message));
      continue;
    }
    const auto results = std::exchange(next, std::find_if_not(next, all.end(), is_result));
    if (results == next)
      parted.push_back(std::move(message));
    else
      add_calls_one_by_one(parted, std::move(message), {results, next});
  }
  messages = std::move(parted);
}

/// Leaves out arguments that are no JSON. False if there are none.
bool drop_cut_arguments(json& messages) {
  bool any = false;
  for (json& message : messages) {
    if (!message.contains("tool_calls")) continue;
    for (json& call : message["tool_calls"])
      if (json& arguments = call["function"]["arguments"]; arguments.is_string()) {
        arguments = json::object();
        any = true;
      }
  }
  return any;
}

/// Puts what a user says behind results into the last of them: where roles have to alternate, results do not count.
/// False if nobody does.
bool add_questions_to_results(json& messages) {
  json added = json::array();
  for (json& message : messages) {
    if (message["role"] != "user" || added.empty() || added.back()["role"] != "tool") {
      added.push_back(std::move(message));
      continue;
    }
    auto& result = added.back()["content"].get_ref<std::string&>();
    if (!result.empty()) result += '\n';
    result += message["content"].get_ref<const std::string&>();
  }
  const bool any = added.size() < messages.size();
  messages = std::move(added);
  return any;
}

/// Mistral's templates refuse ids of calls that have not nine letters or digits; those that come from elsewhere have
/// more. Their ends tell them apart, and answers still fit their calls.
void shorten_ids_for(const std::string& source, json& messages) {
  constexpr std::size_t length = 9;
  if (source.find("length != 9") == source.npos) return;
  const auto shorten = [](json& owner, const char* key) {
    if (!owner.is_object() || !owner.contains(key) || !owner[key].is_string()) return;
    auto& id = owner[key].get_ref<std::string&>();
    if (id.size() > length) id.erase(0, id.size() - length);
  };
  for (json& message : messages) {
    shorten(message, "tool_call_id");
    if (message.contains("tool_calls"))
      for (json& call : message["tool_calls"]) shorten(call, "id");
  }
}

/// Of tools, or of calls: a list as a text.
std::string functions_of(const json& list) {
  json functions = json::array();
  for (const json& each : list)
    functions.push_back(each.is_object() && each.contains("function") ? each["function"] : each);
  return functions.dump();
}

/// Phi-4-mini's template knows tools as a text that the system message has, and nothing of calls: those are written as
/// the model writes them.
void write_tools_for(const std::string& source, const json& tools, json& messages) {
  if (tools.is_null() || tools.empty() || source.find("'tools' in message") == source.npos) return;
  if (messages[0]["role"] != "system") messages.insert(messages.begin(), json{{"role", "system"}, {"content", ""}});
  messages[0]["tools"] = functions_of(tools);
  for (json& message : messages)
    if (json& content = message["content"]; content.is_string() && message.contains("tool_calls"))
      content = content.get<std::string>() + "<|tool_call|>" + functions_of(message["tool_calls"]) + "<|/tool_call|>";
}

/// gpt-oss's template calls thoughts `thinking`, and of a message of calls it takes either those or a text.
void write_thoughts_for(const std::string& source, json& messages) {
  if (source.find("message.thinking") == source.npos) return;
  for (json& message : messages) {
    for (const char* name : {"reasoning_content", "reasoning"}) {
      const auto said = message.find(name);
      if (said == message.end() || !said->is_string()) continue;
      if (!message.contains("thinking")) message["thinking"] = *said;
      message.erase(name);
    }
    if (!message.contains("tool_calls") || !message.contains("thinking") || !message["thinking"].is_string()) continue;
    auto &thought = message["thinking"].get_ref<std::string&>(), &text = message["content"].get_ref<std::string&>();
    if (thought.empty() || text.empty()) continue;
    thought.append("\n").append(std::exchange(text, {}));
  }
}

/// It cannot do without a tool's description, which the API does not ask for.
void describe_tools_for(const std::string& source, json& tools) {
  if (source.find("+ tool.description +") == source.npos || !tools.is_array()) return;
  for (json& tool : tools)
    if (tool.is_object() && tool.contains("function") && tool["function"].is_object())
      if (json& description = tool["function"]["description"]; description.is_null()) description = "";
}

/// Stands behind the last message's text, with a space, while a template is rendered: so the text's end is found again.
constexpr std::string_view end_mark = "[the message goes on here]";

constexpr const char* blanks = " \t\r\n";

/// How many blanks a message ends with. Of one of blanks alone they are its beginning, too: what is stripped there is
/// gone already.
std::size_t blanks_behind(const std::string& message) {
  const std::size_t last = message.find_last_not_of(blanks);
  return last == message.npos ? 0 : message.size() - last - 1;
}

/// Where a template strips texts, the mark has lost its space; then the message's own blanks before it go, too.
std::string before_mark(std::string text, std::size_t own_blanks) {
  const std::size_t end = text.rfind(end_mark);
  if (end == text.npos)
    refuse_field("continue_final_message",
                 "continue_final_message: the chat template does not write the last message's text: leave it out");
  const bool is_stripped = !std::string_view(text).substr(end + end_mark.size()).starts_with(' ');
  text.resize(end);
  if (is_stripped) text.resize(std::max(text.find_last_not_of(blanks) + 1, end - std::min(end, own_blanks)));
  return text;
}

}  // namespace

chat_format::chat_format(const std::filesystem::path& model, std::shared_ptr<const tokenizer> tokens)
    : chat_format(model, std::move(tokens), model.string()) {}

chat_format::chat_format(const std::filesystem::path& model, std::shared_ptr<const tokenizer> tokens,
                         const std::string& shown)
    : chat_format(sources_of(model), shown + ": chat template", std::move(tokens)) {}

chat_format::chat_format(chat_sources sources, const std::string& where, std::shared_ptr<const tokenizer> tokens)
    : sources_(std::move(sources)),
      tokens_(std::move(tokens)),
      usual_(std::make_unique<const chat_template>(sources_.usual, where)) {
  if (!sources_.with_tools.empty())
    with_tools_ = std::make_unique<const chat_template>(sources_.with_tools, where + " for tools");
}

chat_format::~chat_format() = default;

std::string chat_format::render(const chat_input& chat) const {
  json messages = parsed(chat.messages, "messages");
  prepare_messages(messages);
  std::string& last = messages.back()["content"].get_ref<std::string&>();
  const std::size_t own_blanks = blanks_behind(last);
  if (chat.continues_message) last.append(end_mark).append(" ");
  const json tools = chat.tools.empty() ? json(nullptr) : parsed(chat.tools, "tools");
  const json further = parsed_variables(chat.variables);
  std::string text;
  try {
    text = render_as_can_be(messages, tools, chat.add_generation_prompt, further);
  } catch (const input_error& error) {
    if (further.empty() || !can_render(messages, tools, chat.add_generation_prompt)) throw;
    refuse_field(variables_field, fmt::format("chat_template_kwargs: {}", error.what()));
  }
  return chat.continues_message ? before_mark(std::move(text), own_blanks) : text;
}

std::string chat_format::render_as_can_be(const json& messages, const json& tools, bool add_generation_prompt,
                                          const json& further) const {
  try {
    return render(messages, tools, add_generation_prompt, further);
  } catch (const input_error&) {
    for (const auto& [cut, questions] : {std::pair(true, false), {false, true}, {true, true}}) {
      json changed = messages;
      if ((cut && !drop_cut_arguments(changed)) || (questions && !add_questions_to_results(changed))) continue;
      try {
        return render(changed, tools, add_generation_prompt, further);
      } catch (const input_error&) {
      }
    }
    throw;
  }
}

bool chat_format::can_render(const json& messages, const json& tools, bool add_generation_prompt) const {
  try {
    (void)render_as_can_be(messages, tools, add_generation_prompt, json::object());
    return true;
  } catch (const input_error&) {
    return false;
  }
}

std::string chat_format::render(std::string_view system, std::string_view message) const {
  json messages = json::array();
  if (!system.empty()) messages.push_back({{"role", "system"}, {"content", system}});
  messages.push_back({{"role", "user"}, {"content", message}});
  return render(messages, nullptr, true, json::object());
}

/// The variables are what the reference hands to a template, in its order.
std::string chat_format::render(const json& messages, const json& tools, bool add_generation_prompt,
                                const json& further) const {
  const bool has_tools = !tools.is_null() && !tools.empty();
  const std::string& source = has_tools ? sources_.for_tools() : sources_.usual;
  check_roles(messages, source);
  json variables;
  variables["messages"] = messages;
  part_texts_for(source, variables["messages"]);
  part_calls_for(source, variables["messages"]);
  write_calls_for(source, variables["messages"]);
  shorten_ids_for(source, variables["messages"]);
  write_tools_for(source, tools, variables["messages"]);
  write_thoughts_for(source, variables["messages"]);
  variables["tools"] = tools;
  describe_tools_for(source, variables["tools"]);
  variables["documents"] = nullptr;
  variables["add_generation_prompt"] = add_generation_prompt;
  for (const auto& [name, text] : sources_.texts) variables[name] = text;
  if (tokens_->bos()) variables["bos_token"] = tokens_->bytes_of(*tokens_->bos());
  if (tokens_->eos()) variables["eos_token"] = tokens_->bytes_of(*tokens_->eos());
  for (const auto& [name, value] : further.items())
    if (name != "messages") variables[name] = value;
  return with_bos((has_tools && with_tools_ ? *with_tools_ : *usual_).render(variables));
}

/// Some converters to GGUF take the BOS out of a template, since llama.cpp puts one before every text if the tokenizer
/// does, and only one.
std::string chat_format::with_bos(std::string text) const {
  if (!sources_.leaves_bos || !tokens_->bos()) return text;
  const auto around_texts = tokens_->encode("");
  const bool adds_bos = !around_texts.empty() && around_texts.front() == *tokens_->bos();
  const std::string_view bos = tokens_->bytes_of(*tokens_->bos());
  return adds_bos && !text.starts_with(bos) ? text.insert(0, bos) : text;
}

}  // namespace troupe
