#include "actors/http/chats/response_input_impl.hpp"

#include "actors/http/placed_json_impl.hpp"

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

json response_texts(const placed_json& content) {
  return texts_of(content, {"input_text", "output_text", "text", "refusal"});
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
void add_call(json& messages, const placed_json& item) {
  if (messages.empty() || messages.back()["role"] != "assistant")
    messages.push_back({{"role", "assistant"}, {"content", nullptr}});
  messages.back()["tool_calls"].push_back(
      {{"id", item.text("call_id")},
       {"type", "function"},
       {"function", {{"name", item.text("name")}, {"arguments", item.text("arguments")}}}});
}

void add_item(json& messages, const placed_json& item) {
  if (!item->is_object()) item.refuse("should be an object");
  const std::string type = item->contains("type") ? item.text("type") : "message";
  if (type == "reasoning") return add_thought(messages, *item);
  if (type == "function_call") return add_call(messages, item);
  if (type == "function_call_output") {
    messages.push_back(
        {{"role", "tool"}, {"tool_call_id", item.text("call_id")}, {"content", response_texts(item.member("output"))}});
    return;
  }
  if (type != "message") item.refuse_type(type, "messages and calls of functions are");
  json content = response_texts(item.member("content"));
  if (item.text("role") == "assistant" && ends_with_thought(messages))
    messages.back()["content"] = std::move(content);
  else
    messages.push_back({{"role", item.text("role")}, {"content", std::move(content)}});
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
  for (std::size_t i = 0; i < input->size(); ++i) add_item(messages, placed_json(*input, "input")[i]);
  if (messages.empty()) refuse_field("input", "input is empty", "missing_required_parameter");
  return messages;
}

/// {"type": "function", "name", "parameters"} → {"type": "function", "function": {"name", "parameters"}}
json tools_of(const json& list) {
  json tools = json::array();
  for (std::size_t i = 0; i < list.size(); ++i) {
    const placed_json each = placed_json(list, "tools")[i];
    if (const std::string& type = each.text("type"); type != "function")
      each.refuse_type(type, "turn it off in the client, only functions are");
    if (!each->contains("name") || !(*each)["name"].is_string())
      refuse_field("tools", "tools should be a list of {\"type\": \"function\", \"name\": …}");
    json function = *each;
    function.erase("type");
    tools.push_back({{"type", "function"}, {"function", std::move(function)}});
  }
  return tools;
}

/// {"type": "function", "name"}, or {"type": "allowed_tools", "mode", "tools"}, in a chat's form.
json tool_choice_of(const json& choice) {
  if (!choice.is_object()) return choice;
  if (choice.contains("name")) return {{"type", "function"}, {"function", {{"name", choice["name"]}}}};
  json allowed = choice;
  if (allowed.contains("tools"))
    for (json& each : allowed["tools"]) each = tool_choice_of(each);
  return {{"type", choice.value("type", json())}, {"allowed_tools", std::move(allowed)}};
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

/// As vLLM has it: the first tokens go, where OpenAI leaves out whole items.
void read_truncation(const request_fields& from, json& chat) {
  const std::string truncation = truncation_of(from);
  if (truncation != "auto" && truncation != "disabled")
    refuse_field("truncation", "truncation should be auto or disabled", "unsupported_value");
  if (truncation == "auto" && !from.has("truncate_prompt_tokens")) chat["truncate_prompt_tokens"] = -1;
}

}  // namespace

std::string truncation_of(const request_fields& from) {
  return from.text("truncation").value_or("disabled");
}

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
  read_truncation(from, chat);
  if (const auto most = from.integer("max_output_tokens", 1, INT64_MAX)) chat["max_completion_tokens"] = *most;
  const auto top = from.small("top_logprobs", 0, 20);
  if (wants_logprobs(from) || top.value_or(0) > 0) {
    chat["logprobs"] = true;
    chat["top_logprobs"] = top.value_or(0);
  }
  return chat;
}

}  // namespace troupe
