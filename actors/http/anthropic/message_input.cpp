#include "actors/http/anthropic/message_input_impl.hpp"

namespace troupe {
namespace {

/// Refuses by name what would change the answer and is not served: it runs or is kept at Anthropic.
void refuse_unserved_here(const request_fields& from) {
  constexpr std::pair<const char*, const char*> unserved[] = {{"container", "leave it out"},
                                                              {"mcp_servers", "let the client ask them"},
                                                              {"output_format", "use output_config.format"},
                                                              {"compaction", "leave it out"},
                                                              {"thread", "send the whole conversation"}};
  for (const auto& [name, remedy] : unserved)
    if (const json* value = from.find(name); value && *value != json::array())
      refuse_field(name, fmt::format("{} is not served here: {}", name, remedy), "unsupported_parameter");
}

/// {"name", "description", "input_schema"} → {"type": "function", "function": {"name", "description", "parameters"}}
json function_of(const json& tool, const std::string& where) {
  const auto refuse_tool = [&](const std::string& problem) {
    refuse_field("tools", fmt::format("{} {}", where, problem), "unsupported_value");
  };
  if (!tool.is_object()) refuse_tool("should be an object");
  const json type = tool.value("type", json());
  if (!type.is_null() && type != "custom")
    refuse_tool(fmt::format("is of the type {}: only tools with an input_schema are served",
                            type.is_string() ? type.get<std::string>().substr(0, 40) : "of no text"));
  if (!tool.contains("name") || !tool["name"].is_string()) refuse_tool("has no name");
  if (!tool.contains("input_schema") || !tool["input_schema"].is_object()) refuse_tool("has no input_schema");
  json function{{"name", tool["name"]}};
  if (tool.contains("description")) function["description"] = tool["description"];
  if (tool.contains("strict")) function["strict"] = tool["strict"];
  function["parameters"] = tool["input_schema"];
  return {{"type", "function"}, {"function", std::move(function)}};
}

void add_tools(json& chat, const json& list) {
  json tools = json::array();
  for (std::size_t i = 0; i < list.size(); ++i) tools.push_back(function_of(list[i], fmt::format("tools[{}]", i)));
  chat["tools"] = std::move(tools);
}

json choice_of(const request_fields& choice) {
  const std::string type = choice.text("type").value_or("");
  if (type == "auto" || type == "none") return type;
  if (type == "any") return "required";
  if (type == "tool") return {{"type", "function"}, {"function", {{"name", choice.required_text("name")}}}};
  refuse_field("tool_choice", "tool_choice.type should be auto, any, tool or none", "unsupported_value");
}

void add_tool_choice(json& chat, const json& object) {
  const request_fields choice(object);
  chat["tool_choice"] = choice_of(choice);
  if (choice.boolean("disable_parallel_tool_use").value_or(false)) chat["parallel_tool_calls"] = false;
}

/// The variables by which templates of models that think or not are told. How long a thought gets, `budget_tokens`, is
/// not for a template to say.
void add_thinking(json& chat, const json& object) {
  const std::string type = request_fields(object).text("type").value_or("");
  const bool thinks = type == "enabled" || type == "adaptive" || type == "between_tools";
  if (!thinks && type != "disabled")
    refuse_field("thinking", "thinking.type should be enabled, adaptive, between_tools or disabled",
                 "unsupported_value");
  json& variables = chat["chat_template_kwargs"];
  if (variables.is_null()) variables = json::object();
  if (!variables.is_object()) return;  // is refused as that field
  for (const char* name : {"enable_thinking", "thinking"}) variables.emplace(name, thinks);
}

/// {"format": {"type": "json_schema", "schema"}}; `effort` changes nothing: no model here can be told.
void add_form(json& chat, const json& config) {
  const json* format = request_fields(config).object("format");
  if (!format) return;
  const request_fields form(*format);
  if (form.text("type") != "json_schema" || !form.object("schema"))
    refuse_field("output_config", "output_config.format should be {\"type\": \"json_schema\", \"schema\": …}",
                 "unsupported_value");
  chat["response_format"] = {{"type", "json_schema"}, {"json_schema", {{"schema", *form.find("schema")}}}};
}

/// As at Anthropic, the answer goes on with a last message that is the assistant's.
bool begins_answer(const json& last) {
  return last["role"] == "assistant" && !last.contains("tool_calls");
}

void add_stops(json& chat, const json& list) {
  for (const json& each : list)
    if (!each.is_string()) request_fields::refuse_type("stop_sequences", "a list of texts");
  chat["stop"] = list;
}

}  // namespace

json chat_of_message(const request_fields& from) {
  refuse_unserved_here(from);
  json chat = from.object();
  for (const char* key :
       {"system", "stop_sequences", "tools", "tool_choice", "thinking", "output_config", "metadata", "stop",
        "max_completion_tokens", "parallel_tool_calls", "continue_final_message", "add_generation_prompt", "n",
        "best_of", "logprobs", "top_logprobs", "prompt_logprobs", "stream_options"})
    chat.erase(key);
  chat["messages"] = turns_of_message(from);
  if (begins_answer(chat["messages"].back())) chat["continue_final_message"] = true;
  if (const json* stops = from.list("stop_sequences")) add_stops(chat, *stops);
  if (const json* tools = from.list("tools")) add_tools(chat, *tools);
  if (const json* choice = from.object("tool_choice")) add_tool_choice(chat, *choice);
  if (const json* thinking = from.object("thinking")) add_thinking(chat, *thinking);
  if (const json* config = from.object("output_config")) add_form(chat, *config);
  return chat;
}

}  // namespace troupe
