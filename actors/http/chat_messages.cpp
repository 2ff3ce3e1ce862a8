#include "actors/http/chat_messages.hpp"

#include "actors/request_fields_impl.hpp"

namespace troupe {
namespace {

constexpr std::size_t most_messages = 10'000;

/// A text, or a list of {"type": "text", "text"}.
std::string content_text(const json& content, std::size_t index) {
  if (content.is_string()) return content.get<std::string>();
  const std::string where = fmt::format("messages[{}].content", index);
  if (!content.is_array()) refuse_field("messages", where + " should be a text or a list of parts", "invalid_type");
  std::string text;
  for (const json& part : content) {
    const bool right = part.is_object() && (!part.contains("type") || part["type"] == "text") &&
                       part.contains("text") && part["text"].is_string();
    if (!right)
      refuse_field("messages", where + " has a part that is no text: only text is served", "unsupported_value");
    text += part["text"].get<std::string>();
  }
  return text;
}

/// Templates print arguments as the objects that they are.
void open_arguments(json& message, std::size_t index) {
  const auto calls = message.find("tool_calls");
  if (calls == message.end() || calls->is_null()) return;
  const auto refuse_calls = [&] {
    refuse_field("messages", fmt::format("messages[{}].tool_calls should be a list of calls of functions", index));
  };
  if (!calls->is_array()) refuse_calls();
  for (json& call : *calls) {
    if (!call.is_object() || !call.contains("function") || !call["function"].is_object()) refuse_calls();
    json& arguments = call["function"]["arguments"];
    if (!arguments.is_string()) continue;
    const std::string text = arguments.get<std::string>();
    if (text.find_first_not_of(" \t\r\n") == text.npos) {
      arguments = json::object();
      continue;
    }
    try {
      arguments = detail::parse_json_as<json>(text, "arguments", {.depth = 64});
    } catch (const input_error& error) {
      refuse_field("messages", fmt::format("messages[{}].tool_calls: {}", index, error.what()));
    }
  }
}

json read_message(const json& given, std::size_t index) {
  if (!given.is_object() || !given.contains("role") || !given["role"].is_string())
    refuse_field("messages", fmt::format("messages[{}] should be an object with a role", index), "invalid_type");
  json message = given;
  const auto content = message.find("content");
  const bool calls = message.contains("tool_calls") && message["tool_calls"].is_array();
  if (content == message.end() || content->is_null()) {
    if (!calls && !message.contains("refusal"))
      refuse_field("messages", fmt::format("messages[{}] has no content", index), "missing_required_parameter");
    message["content"] = calls ? json(nullptr) : json("");
  } else {
    *content = content_text(*content, index);
  }
  if (message["role"] == "developer") message["role"] = "system";
  open_arguments(message, index);
  return message;
}

}  // namespace

prompt_input read_chat(const request_fields& from) {
  const json* list = from.list("messages");
  if (!list || list->empty()) refuse_field("messages", "messages is missing or empty", "missing_required_parameter");
  if (list->size() > most_messages)
    refuse_field("messages", fmt::format("messages has {} entries: use at most {}", list->size(), most_messages));
  json messages = json::array();
  for (std::size_t i = 0; i < list->size(); ++i) messages.push_back(read_message((*list)[i], i));
  prompt_input input{.field = "messages"};
  input.messages = dump(messages);
  if (const json* tools = from.list("tools"); tools && !tools->empty()) input.tools = dump(*tools);
  if (const json* more = from.object("chat_template_kwargs")) input.template_variables = dump(*more);
  input.add_generation_prompt = from.boolean("add_generation_prompt").value_or(true);
  return input;
}

}  // namespace troupe
