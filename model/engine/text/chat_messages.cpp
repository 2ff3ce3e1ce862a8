#include "model/engine/text/chat_messages.hpp"

#include <nlohmann/json.hpp>
#include <optional>
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

/// Of {"type": "text", "text"} or {"type": "refusal", "refusal"}; nothing where it is neither.
std::optional<std::string> text_of_part(const json& part) {
  if (!part.is_object()) return {};
  const json type = part.value("type", json("text"));
  if (type != "text" && type != "refusal") return {};
  const auto key = type.get<std::string>();
  if (!is_text(part, key.c_str())) return {};
  return part[key].get<std::string>();
}

/// A text, or a list of parts, which become one text with a line for each, as in vLLM and llama.cpp.
std::string joined_content(const json& content, const std::string& where) {
  if (content.is_string()) return content.get<std::string>();
  if (!content.is_array()) refuse("{}.content should be a text or a list of parts", where);
  std::string text;
  for (const json& part : content) {
    const auto of_part = text_of_part(part);
    if (!of_part) refuse("{}.content has a part that is no text: only text is served", where);
    if (!text.empty()) text += '\n';
    text += *of_part;
  }
  return text;
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
  content = content.is_null() ? "" : joined_content(content, where);
}

}  // namespace

void prepare_messages(json& messages) {
  if (!messages.is_array() || messages.empty()) refuse("messages should be a list of {{role, content}}, not empty");
  for (std::size_t i = 0; i < messages.size(); ++i) prepare_message(messages[i], fmt::format("messages[{}]", i));
}

}  // namespace troupe
