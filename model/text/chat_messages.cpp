#include "model/text/chat_messages.hpp"

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

#include "base/ascii.hpp"
#include "base/error.hpp"
#include "model/formats/json_input.hpp"

namespace troupe {
namespace {

using json = nlohmann::ordered_json;

bool is_text(const json& object, const char* key) {
  return object.is_object() && object.contains(key) && object[key].is_string();
}

/// Formatted only for a refusal: a message may have millions of parts.
struct part_place {
  const std::string& message;
  std::size_t index;

  std::string text() const { return fmt::format("{}.content[{}]", message, index); }
};

/// Which field of a part says something: vLLM reads those of all these types as text.
std::string field_of_part(const json& part, bool is_assistants, const part_place& at) {
  if (!part.is_object()) refuse("{} should be a text or an object", at.text());
  const auto found = part.find("type");
  if (found == part.end() && part.contains("text")) return "text";
  if (found == part.end() || !found->is_string()) refuse("{} should have a text as type", at.text());
  const auto& type = found->get_ref<const std::string&>();
  if (type == "text" || type == "input_text" || type == "output_text") return "text";
  if (type == "refusal" || (type == "thinking" && is_assistants)) return type;
  refuse("{} is of the type {}: only text is served", at.text(), type.substr(0, 40));
}

/// Nothing is an empty text.
std::string text_of_part(const json& part, const std::string& field, const part_place& at) {
  const auto found = part.find(field);
  if (found == part.end() || found->is_null()) return {};
  if (!found->is_string()) refuse("{} should have a text as {}", at.text(), field);
  return found->get<std::string>();
}

void add_line(std::string& to, const std::string& line) {
  if (line.empty()) return;
  if (!to.empty()) to += '\n';
  to += line;
}

/// A list of parts becomes one text with a line for each that says something, as in vLLM. What an assistant thought is
/// told from what it said, unless the message has its thoughts already.
void join_parts(json& message, const std::string& where) {
  const json parts = std::exchange(message["content"], "");
  const bool is_assistants = message["role"] == "assistant";
  std::string text, thought;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const part_place at{where, i};
    if (parts[i].is_string()) {
      add_line(text, parts[i].get_ref<const std::string&>());
      continue;
    }
    const std::string field = field_of_part(parts[i], is_assistants, at);
    add_line(field == "thinking" ? thought : text, text_of_part(parts[i], field, at));
  }
  message["content"] = std::move(text);
  if (!thought.empty() && !message.contains("reasoning_content")) message["reasoning_content"] = std::move(thought);
}

std::optional<json> parsed(const std::string& arguments, const std::string& where) {
  try {
    return detail::parse_json_as<json>(arguments, where + ".tool_calls: arguments",
                                       {.depth = 64, .repeated_keys = true});
  } catch (const input_error&) {
    return {};
  }
}

/// Clients send arguments as a text, or none at all; templates print them as the objects that they are. What is no JSON
/// stays a text: a call that `max_tokens` cut has such arguments.
void open_arguments(json& call, const std::string& where) {
  if (!call.is_object() || !call.contains("function") || !call["function"].is_object())
    refuse("{}.tool_calls should be a list of calls of functions", where);
  json& arguments = call["function"]["arguments"];
  if (arguments.is_null()) arguments = json::object();
  if (!arguments.is_string()) return;
  const auto text = arguments.get<std::string>();
  if (is_blank(text))
    arguments = json::object();
  else if (auto value = parsed(text, where))
    arguments = *std::move(value);
}

/// True where there are some.
bool open_calls(json& message, const std::string& where) {
  const auto calls = message.find("tool_calls");
  if (calls == message.end()) return false;
  if (!calls->is_array()) refuse("{}.tool_calls should be a list of calls of functions", where);
  for (json& call : *calls) open_arguments(call, where);
  return true;
}

/// Clients repeat answers with all their fields, empty ones too. Templates ask whether a field is there, not what it
/// says. The rest is moved to an object of its own: erasing one field after the other takes quadratic time.
void drop_what_says_nothing(json& message) {
  json::object_t kept;
  for (auto& [key, value] : message.get_ref<json::object_t&>()) {
    const bool nothing = value.is_null() || (key == "tool_calls" && value == json::array());
    if (!nothing || key == "content") kept.emplace_back(key, std::move(value));
  }
  message.swap(kept);
}

/// Thoughts have two names; templates read the older one.
void name_thoughts(json& message) {
  if (!message.contains("reasoning_content") && is_text(message, "reasoning"))
    message["reasoning_content"] = message["reasoning"].get<std::string>();
}

void prepare_message(json& message, const std::string& where) {
  if (!is_text(message, "role")) refuse("{} should be an object with a role", where);
  if (message["role"] == "developer") message["role"] = "system";
  drop_what_says_nothing(message);
  name_thoughts(message);
  if (message.contains("function_call")) refuse("{}.function_call is the older form: use tool_calls", where);
  const bool calls = open_calls(message, where);
  json& content = message["content"];
  if (content.is_null() && !calls) refuse("{} has no content", where);
  // Of calls alone: many templates add a text to it, or would print "None".
  if (content.is_null()) content = "";
  if (content.is_array())
    join_parts(message, where);
  else if (!content.is_string())
    refuse("{}.content should be a text or a list of parts", where);
}

/// The API knows a result's call by its id; some templates want the function's name beside it.
void name_results(json& messages) {
  std::unordered_map<std::string, std::string> called;
  for (json& message : messages) {
    if (const auto calls = message.find("tool_calls"); calls != message.end())
      for (const json& call : *calls)
        if (is_text(call, "id") && is_text(call["function"], "name")) called[call["id"]] = call["function"]["name"];
    if (message["role"] != "tool" || message.contains("name") || !is_text(message, "tool_call_id")) continue;
    const auto name = called.find(message["tool_call_id"].get_ref<const std::string&>());
    if (name != called.end()) message["name"] = name->second;
  }
}

}  // namespace

void prepare_messages(json& messages) {
  if (!messages.is_array() || messages.empty()) refuse("messages should be a list of {{role, content}}, not empty");
  for (std::size_t i = 0; i < messages.size(); ++i) prepare_message(messages[i], fmt::format("messages[{}]", i));
  name_results(messages);
}

json chat_of(std::string_view system, std::string_view message) {
  json messages = json::array();
  if (!system.empty()) messages.push_back({{"role", "system"}, {"content", system}});
  messages.push_back({{"role", "user"}, {"content", message}});
  return messages;
}

}  // namespace troupe
