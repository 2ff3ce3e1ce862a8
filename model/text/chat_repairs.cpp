#include "model/text/chat_repairs.hpp"

#include <string>
#include <utility>

#include <nlohmann/json.hpp>

namespace troupe {
namespace {

using json = nlohmann::ordered_json;

/// `change` takes the arguments of each call, and says whether it has changed them. False if it has changed none.
template <class Change>
bool change_arguments(json& messages, Change change) {
  bool any = false;
  for (json& message : messages) {
    if (!message.contains("tool_calls")) continue;
    for (json& call : message["tool_calls"]) any |= change(call["function"]["arguments"]);
  }
  return any;
}

/// Leaves out arguments that are no JSON. False if there are none.
bool drop_cut_arguments(json& messages) {
  return change_arguments(messages, [](json& arguments) {
    if (!arguments.is_string()) return false;
    arguments = json::object();
    return true;
  });
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

/// The API asks neither for a tool's description nor for its parameters. False if no tool lacks any.
bool complete_tools(json& tools) {
  bool any = false;
  const auto complete = [&](json& function, const char* key, const json& otherwise) {
    json& value = function[key];
    if (!value.is_null()) return;
    value = otherwise;
    any = true;
  };
  for (json& tool : tools) {
    if (!tool.is_object() || !tool.contains("function") || !tool["function"].is_object()) continue;
    complete(tool["function"], "description", "");
    complete(tool["function"], "parameters", {{"type", "object"}, {"properties", json::object()}});
  }
  return any;
}

bool apply_repair(unsigned bit, json& messages, json& tools) {
  switch (bit) {
    case 0b0001:
      return drop_cut_arguments(messages);
    case 0b0010:
      return add_questions_to_results(messages);
    case 0b0100:
      return close_arguments(messages);
    default:
      return complete_tools(tools);
  }
}

}  // namespace

bool close_arguments(json& messages) {
  return change_arguments(messages, [](json& arguments) {
    if (!arguments.is_structured()) return false;
    arguments = arguments.dump();
    return true;
  });
}

bool apply_repairs(unsigned which, json& messages, json& tools) {
  for (unsigned bit = 1; bit <= all_repairs; bit <<= 1)
    if ((which & bit) != 0 && !apply_repair(bit, messages, tools)) return false;
  return true;
}

}  // namespace troupe
