#include "actors/http/chats/response_input_impl.hpp"

namespace troupe {
namespace {

/// Refuses by name what other servers keep between requests, or run without a client.
void refuse_kept_state(const request_fields& from) {
  for (const char* name : {"previous_response_id", "conversation"})
    if (from.has(name))
      refuse_field(name, fmt::format("{} is not served: responses are not kept, send all items as input", name),
                   "unsupported_parameter");
  if (from.has("prompt"))
    refuse_field("prompt", "prompt is not served: send instructions and input", "unsupported_parameter");
  if (from.boolean("background").value_or(false))
    refuse_field("background", "background is not served: leave it out, or send a batch", "unsupported_parameter");
}

[[noreturn]] void refuse_item(std::size_t index, std::string_view problem) {
  refuse_field("input", fmt::format("input[{}] {}", index, problem), "unsupported_value");
}

const std::string& item_text(const json& item, std::size_t index, const char* key) {
  const auto found = item.find(key);
  if (found == item.end() || !found->is_string()) refuse_item(index, fmt::format("has no text as {}", key));
  return found->get_ref<const std::string&>();
}

/// A text, or parts: {"type": "input_text" | "output_text" | "text", "text"} and {"type": "refusal", "refusal"}. Those
/// become one text with a line for each, like the parts of a chat's message.
std::string content_of(const json& content, std::size_t index) {
  if (content.is_string()) return content.get<std::string>();
  if (!content.is_array()) refuse_item(index, "should have a text or a list of parts");
  std::string text;
  for (const json& part : content) {
    if (!part.is_object()) refuse_item(index, "has a part that is no object");
    const std::string& type = item_text(part, index, "type");
    const bool is_text = type == "input_text" || type == "output_text" || type == "text";
    if (!is_text && type != "refusal") refuse_item(index, "has a part that is no text: only text is served");
    if (!text.empty()) text += '\n';
    text += item_text(part, index, is_text ? "text" : "refusal");
  }
  return text;
}

/// What the assistant thought, before what it says or calls: then both are one message. A thought of which there is but
/// a summary, or a secret, is another model's.
void add_thought(json& messages, const json& item) {
  const auto parts = item.find("content");
  if (parts == item.end() || !parts->is_array()) return;
  std::string thought;
  for (const json& part : *parts)
    if (part.is_object() && part.value("type", json()) == "reasoning_text" && part.value("text", json()).is_string())
      thought += part["text"].get<std::string>();
  if (!thought.empty())
    messages.push_back({{"role", "assistant"}, {"content", nullptr}, {"reasoning_content", std::move(thought)}});
}

bool ends_with_thought(const json& messages) {
  return !messages.empty() && messages.back().contains("reasoning_content") && messages.back()["content"].is_null() &&
         !messages.back().contains("tool_calls");
}

/// A call is added to the assistant's message before it.
void add_call(json& messages, const json& item, std::size_t index) {
  if (messages.empty() || messages.back()["role"] != "assistant")
    messages.push_back({{"role", "assistant"}, {"content", nullptr}});
  messages.back()["tool_calls"].push_back(
      {{"id", item_text(item, index, "call_id")},
       {"type", "function"},
       {"function", {{"name", item_text(item, index, "name")}, {"arguments", item_text(item, index, "arguments")}}}});
}

void add_item(json& messages, const json& item, std::size_t index) {
  if (!item.is_object()) refuse_item(index, "should be an object");
  const std::string type = item.contains("type") ? item_text(item, index, "type") : "message";
  if (type == "reasoning") return add_thought(messages, item);
  if (type == "function_call") return add_call(messages, item, index);
  if (type == "function_call_output") {
    if (!item.contains("output")) refuse_item(index, "has no output");
    messages.push_back({{"role", "tool"},
                        {"tool_call_id", item_text(item, index, "call_id")},
                        {"content", content_of(item["output"], index)}});
    return;
  }
  if (type != "message")
    refuse_item(index,
                fmt::format("is of the type {}: messages and calls of functions are served", type.substr(0, 40)));
  if (!item.contains("content")) refuse_item(index, "has no content");
  if (item_text(item, index, "role") == "assistant" && ends_with_thought(messages)) {
    messages.back()["content"] = content_of(item["content"], index);
    return;
  }
  messages.push_back({{"role", item_text(item, index, "role")}, {"content", content_of(item["content"], index)}});
}

json messages_of(const request_fields& from) {
  json messages = json::array();
  if (const auto instructions = from.text("instructions"))
    messages.push_back({{"role", "system"}, {"content", *instructions}});
  const json* input = from.find("input");
  if (!input) request_fields::refuse_missing("input");
  if (input->is_string()) {
    messages.push_back({{"role", "user"}, {"content", *input}});
    return messages;
  }
  if (!input->is_array()) request_fields::refuse_type("input", "a text or a list of items");
  for (std::size_t i = 0; i < input->size(); ++i) add_item(messages, (*input)[i], i);
  if (messages.empty()) refuse_field("input", "input is empty", "missing_required_parameter");
  return messages;
}

/// {"type": "function", "name", "parameters"} → {"type": "function", "function": {"name", "parameters"}}
json tools_of(const json& list) {
  json tools = json::array();
  for (const json& each : list) {
    const bool right = each.is_object() && each.contains("type") && each["type"] == "function";
    if (!right)
      refuse_field("tools", "tools has one that is no function: only functions are served", "unsupported_value");
    json function = each;
    function.erase("type");
    tools.push_back({{"type", "function"}, {"function", std::move(function)}});
  }
  return tools;
}

json tool_choice_of(const json& choice) {
  if (!choice.is_object() || !choice.contains("name")) return choice;
  return {{"type", "function"}, {"function", {{"name", choice["name"]}}}};
}

/// {"type": "json_schema", "name", "schema"} → {"type": "json_schema", "json_schema": {"name", "schema"}}
json form_of(const json& format) {
  if (!format.contains("type") || format["type"] != "json_schema") return format;
  json schema = format;
  schema.erase("type");
  return {{"type", "json_schema"}, {"json_schema", std::move(schema)}};
}

bool wants_logprobs(const request_fields& from) {
  const json* include = from.list("include");
  if (!include) return false;
  for (const json& each : *include)
    if (each == "message.output_text.logprobs") return true;
  return false;
}

}  // namespace

json chat_of_response(const request_fields& from) {
  refuse_kept_state(from);
  json chat = from.object();
  for (const char* key : {"input", "instructions", "text", "tools", "tool_choice", "include", "max_output_tokens",
                          "max_tokens", "logprobs", "top_logprobs", "n", "best_of", "stream_options"})
    chat.erase(key);
  chat["messages"] = messages_of(from);
  if (const json* tools = from.list("tools")) chat["tools"] = tools_of(*tools);
  if (const json* choice = from.find("tool_choice")) chat["tool_choice"] = tool_choice_of(*choice);
  if (const json* reasoning = from.object("reasoning"))
    if (const auto effort = request_fields(*reasoning).text("effort")) chat["reasoning_effort"] = *effort;
  if (const json* text = from.object("text"))
    if (const json* format = request_fields(*text).object("format")) chat["response_format"] = form_of(*format);
  if (const auto most = from.integer("max_output_tokens", 1, INT32_MAX)) chat["max_completion_tokens"] = *most;
  const auto top = from.small("top_logprobs", 0, 20);
  if (wants_logprobs(from) || top.value_or(0) > 0) {
    chat["logprobs"] = true;
    chat["top_logprobs"] = top.value_or(0);
  }
  return chat;
}

}  // namespace troupe
