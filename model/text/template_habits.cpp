#include "model/text/template_habits.hpp"

#include <algorithm>
#include <map>
#include <span>
#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>

#include "model/text/chat_repairs.hpp"

namespace troupe {
namespace {

using json = nlohmann::ordered_json;

/// DeepSeek's templates want calls as the API has them: they know a message of calls by its lack of content, and put
/// arguments together as text. A template that takes an empty text for none needs no null, and may measure the text.
/// Functionary's (v2.2) would write an empty answer before the calls.
void write_calls_for(const std::string& source, json& messages) {
  const bool wants_no_content =
      (source.find("['content'] is none") != source.npos && source.find("['content'] == ''") == source.npos) ||
      source.find("contain_content") != source.npos;
  const bool wants_text = source.find("['arguments'] +") != source.npos;
  if (wants_text) close_arguments(messages);
  if (!wants_no_content) return;
  for (json& message : messages) {
    if (!message.contains("tool_calls")) continue;
    if (json& content = message["content"]; content == "") content = nullptr;
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

/// A value as Python writes it.
std::string python_of(const json& value) {
  if (value.is_null()) return "None";
  if (value.is_boolean()) return value.get<bool>() ? "True" : "False";
  if (!value.is_structured()) return value.dump();
  std::string parts;
  for (const auto& [key, part] : value.items()) {
    if (!parts.empty()) parts += ", ";
    if (value.is_object()) parts += json(key).dump() + ": ";
    parts += python_of(part);
  }
  return value.is_object() ? "{" + parts + "}" : "[" + parts + "]";
}

std::string name_of(const json& function) {
  const json name = function.value("name", json());
  return name.is_string() ? name.get<std::string>() : "";
}

/// Those that were cut are a text.
std::string python_arguments_of(const json& arguments) {
  if (arguments.is_string()) return arguments.get<std::string>();
  std::string parts;
  for (const auto& [key, part] : arguments.items()) parts += (parts.empty() ? "" : ", ") + key + "=" + python_of(part);
  return parts;
}

/// The first templates of LFM2 and of LFM2.5 know nothing of calls: those are written as the model writes them.
void write_python_for(const std::string& source, json& messages) {
  const auto has = [&](std::string_view text) { return source.find(text) != source.npos; };
  if (has("tool_calls") || !has("<|im_start|>") || !has("List of tools: ")) return;
  for (json& message : messages) {
    if (!message.contains("tool_calls") || !message["content"].is_string()) continue;
    std::string calls;
    for (const json& call : message["tool_calls"]) {
      const json& function = call["function"];
      calls += (calls.empty() ? "" : ", ") + name_of(function) + "(" + python_arguments_of(function["arguments"]) + ")";
    }
    json& content = message["content"];
    content = "<|tool_call_start|>[" + calls + "]<|tool_call_end|>" + content.get<std::string>();
  }
}

/// GLM-4's templates know a call as a message of its own, with the function's name as metadata and the arguments as
/// text, and its result as an observation. Older ones look for the tools in a message.
void write_metadata_for(const std::string& source, const json& tools, json& messages) {
  const auto has = [&](std::string_view text) { return source.find(text) != source.npos; };
  if (!has("metadata") || !has("Json 格式表示调用的参数")) return;
  json written = json::array();
  if (!tools.is_null() && !tools.empty() && has("item['tools']"))
    written.push_back(json{{"role", "system"}, {"content", ""}, {"tools", tools}});
  for (json& message : messages) {
    json calls = json::array();
    if (message.contains("tool_calls")) calls = std::exchange(message["tool_calls"], json::array());
    if (is_result(message)) message["role"] = "observation";
    if (calls.empty() || message["content"] != "") written.push_back(std::move(message));
    for (const json& call : calls) {
      const json &function = call["function"], &arguments = function["arguments"];
      written.push_back(json{{"role", "assistant"},
                             {"metadata", name_of(function)},
                             {"content", arguments.is_string() ? arguments.get<std::string>() : arguments.dump()}});
    }
  }
  messages = std::move(written);
}

/// Cohere's call the thoughts of a message with calls its plan, and leave out its text.
void write_plans_for(const std::string& source, json& messages) {
  if (source.find("message.tool_plan") == source.npos) return;
  for (json& message : messages) {
    if (!message.contains("tool_calls") || message.contains("tool_plan")) continue;
    const json said = message.value("reasoning_content", json());
    message["tool_plan"] = said.is_string() ? said : message["content"];
  }
}

/// That of Command A Reasoning takes results for lists of parts, and looks for thoughts in the first part of an answer,
/// which an empty text has not. Later ones know texts.
void write_parts_for(const std::string& source, json& messages) {
  const auto has = [&](std::string_view text) { return source.find(text) != source.npos; };
  if (!has("in tool_msg.content") || has("tool_msg.content is string")) return;
  for (json& message : messages)
    if (json& content = message["content"]; content.is_string() && (is_result(message) || content == ""))
      content = json::array({json{{"type", "text"}, {"text", content}}});
}

/// gpt-oss's template calls thoughts `thinking`, and of a message of calls it takes either those or a text. It leaves
/// out what earlier answers thought; Unsloth's takes such answers themselves for thoughts.
void write_thoughts_for(const std::string& source, json& messages) {
  if (source.find("message.thinking") == source.npos) return;
  const bool leaves_earlier = source.find("<|channel|>analysis") != source.npos;
  for (json& message : messages) {
    if (const json said = message.value("reasoning_content", json()); said.is_string()) {
      if (!message.contains("thinking")) message["thinking"] = said;
      message.erase("reasoning_content");
    }
    if (leaves_earlier && !message.contains("tool_calls") && &message != &messages.back()) message.erase("thinking");
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

}  // namespace

void adapt_to(const std::string& source, json& tools, json& messages) {
  part_texts_for(source, messages);
  part_calls_for(source, messages);
  write_calls_for(source, messages);
  shorten_ids_for(source, messages);
  write_tools_for(source, tools, messages);
  write_python_for(source, messages);
  write_metadata_for(source, tools, messages);
  write_plans_for(source, messages);
  write_thoughts_for(source, messages);
  write_parts_for(source, messages);
  describe_tools_for(source, tools);
}

}  // namespace troupe
