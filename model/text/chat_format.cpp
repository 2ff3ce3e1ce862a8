#include "model/text/chat_format.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/ascii.hpp"
#include "base/field_error.hpp"
#include "base/paths.hpp"
#include "model/chat/chat_template.hpp"
#include "model/formats/json_input.hpp"
#include "model/formats/model_files.hpp"
#include "model/text/chat_messages.hpp"
#include "model/text/chat_repairs.hpp"
#include "model/text/template_habits.hpp"

namespace troupe {
namespace {

using json = nlohmann::ordered_json;

constexpr std::size_t most_variables = 1000;

chat_sources sources_of(const std::filesystem::path& model) {
  auto found = find_chat_sources(model);
  if (!found)
    refuse("{}: has no chat template, as {} would be: give the prompt as plain text", model.string(),
           is_folder(model) ? fmt::format("{} in its folder", usual_template_file)
                            : template_beside(model).filename().string() + " beside it");
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

/// Stands behind the last message's text, with a space, while a template is rendered: so the text's end is found again.
constexpr std::string_view end_mark = "[the message goes on here]";

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
  if (is_stripped) text.resize(std::max(without_blanks_behind(text).size(), end - std::min(end, own_blanks)));
  return text;
}

}  // namespace

chat_format::chat_format(const std::filesystem::path& model, std::shared_ptr<const tokenizer> tokens)
    : chat_format(model, std::move(tokens), model.string()) {}

chat_format::chat_format(const std::filesystem::path& model, std::shared_ptr<const tokenizer> tokens,
                         const std::string& shown)
    : chat_format(sources_of(model), shown + ": chat template", std::move(tokens)) {}

chat_format::chat_format(chat_sources sources, const std::string& where, std::shared_ptr<const tokenizer> tokens,
                         std::optional<std::chrono::system_clock::time_point> now)
    : sources_(std::move(sources)),
      tokens_(std::move(tokens)),
      now_(now),
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
    text = render_as_can_be({messages, tools, chat.add_generation_prompt, &further});
  } catch (const input_error& error) {  // the variables are at fault if it can be rendered without them
    if (further.empty() || !can_render({messages, tools, chat.add_generation_prompt})) throw;
    refuse_field(variables_field, fmt::format("chat_template_kwargs: {}", error.what()));
  }
  return chat.continues_message ? before_mark(std::move(text), own_blanks) : text;
}

std::string chat_format::render_as_can_be(const prepared_chat& chat) const {
  try {
    return render_prepared(chat);
  } catch (const input_error&) {
    // Several come behind each of theirs alone.
    for (unsigned which = 1; which <= all_repairs; ++which) {
      json changed = chat.messages, completed = chat.tools;
      if (!apply_repairs(which, changed, completed)) continue;
      try {
        return render_prepared({changed, completed, chat.add_generation_prompt, chat.further});
      } catch (const input_error&) {
      }
    }
    throw;
  }
}

bool chat_format::can_render(const prepared_chat& chat) const {
  try {
    (void)render_as_can_be(chat);
    return true;
  } catch (const input_error&) {
    return false;
  }
}

std::string chat_format::render(std::string_view system, std::string_view message) const {
  const json messages = chat_of(system, message), no_tools;
  return render_prepared({messages, no_tools});
}

/// The variables are what the reference hands to a template, in its order.
std::string chat_format::render_prepared(const prepared_chat& chat) const {
  const bool has_tools = !chat.tools.is_null() && !chat.tools.empty();
  const std::string& source = has_tools ? sources_.for_tools() : sources_.usual;
  check_roles(chat.messages, source);
  json variables;
  variables["messages"] = chat.messages;
  variables["tools"] = chat.tools;
  adapt_to(source, variables["tools"], variables["messages"]);
  variables["documents"] = nullptr;
  variables["add_generation_prompt"] = chat.add_generation_prompt;
  for (const auto& [name, text] : sources_.texts) variables[name] = text;
  if (tokens_->bos()) variables["bos_token"] = tokens_->bytes_of(*tokens_->bos());
  if (tokens_->eos()) variables["eos_token"] = tokens_->bytes_of(*tokens_->eos());
  if (chat.further)
    for (const auto& [name, value] : chat.further->items())
      if (name != "messages") variables[name] = value;
  return with_bos((has_tools && with_tools_ ? *with_tools_ : *usual_).render(variables, {.now = now_, .limits = {}}));
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
