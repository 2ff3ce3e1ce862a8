#include "actors/http/chats/tool_choice.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "actors/requests/request_fields_impl.hpp"
#include "base/percent_decoded.hpp"
#include "model/grammar/loose_schema.hpp"

namespace troupe {
namespace {

struct described_tool {
  std::string name;
  json parameters;
  bool is_strict = false;  ///< calls have arguments that `parameters` accept
};

/// The schema of a function's arguments, which are an object, even where the schema itself also takes null or says no
/// type: no call could be made of another value. A function without a schema has no arguments.
json parameters_of(const json& function) {
  json parameters = function.value("parameters", json());
  if (!parameters.is_object() || parameters.empty())
    return {{"type", "object"}, {"properties", json::object()}, {"additionalProperties", false}};
  parameters["type"] = "object";
  return parameters;
}

/// Whether a value is {"function": {"name": a text}}.
bool names_function(const json& value) {
  return value.is_object() && value.contains("function") && value["function"].is_object() &&
         value["function"].contains("name") && value["function"]["name"].is_string();
}

std::vector<described_tool> read_offers(const request_fields& from) {
  std::vector<described_tool> offers;
  const json* tools = from.list("tools");
  if (!tools) return offers;
  for (const json& each : *tools) {
    if (!names_function(each) || each.value("type", json()) != "function")
      refuse_field("tools", "tools should be a list of {\"type\": \"function\", \"function\": {\"name\": …}}");
    const json& function = each["function"];
    offers.push_back(
        {function["name"].get<std::string>(), parameters_of(function), function.value("strict", json()) == true});
  }
  return offers;
}

/// The name in {"type": "function", "function": {"name"}}.
const std::string& function_named_in(const json& choice) {
  if (!names_function(choice))
    refuse_field("tool_choice", "tool_choice should be auto, none, required, a function's name or allowed_tools");
  return choice["function"]["name"].get_ref<const std::string&>();
}

[[noreturn]] void refuse_unknown_tool() {
  refuse_field("tool_choice", "tool_choice names no tool of the request");
}

described_tool named_by(const json& choice, const std::vector<described_tool>& offers) {
  const std::string& name = function_named_in(choice);
  const auto found = std::find_if(offers.begin(), offers.end(), [&](const auto& each) { return each.name == name; });
  if (found == offers.end()) refuse_unknown_tool();
  return *found;
}

/// Leaves those offers alone that {"type": "allowed_tools", "allowed_tools": {"mode", "tools"}} names. Returns the
/// mode, which is a choice among them.
json narrow(std::vector<described_tool>& offers, const json& choice) {
  const json* allowed = request_fields(choice).object("allowed_tools");
  const json* names = allowed ? request_fields(*allowed).list("tools") : nullptr;
  json mode = allowed ? allowed->value("mode", json()) : json();
  if (!names || names->empty() || (mode != "auto" && mode != "required"))
    refuse_field("tool_choice", "tool_choice: allowed_tools should have a mode, auto or required, and tools");
  std::set<std::string> offered, left;
  for (const described_tool& each : offers) offered.insert(each.name);
  for (const json& each : *names) {
    if (!offered.contains(function_named_in(each))) refuse_unknown_tool();
    left.insert(function_named_in(each));
  }
  std::erase_if(offers, [&](const auto& each) { return !left.contains(each.name); });
  return mode;
}

/// Adapts the references of a schema that was put into another one: they now begin with its place there.
void move_references(json& schema, const std::string& place) {
  if (schema.is_object()) {
    const auto reference = schema.find("$ref");
    if (reference != schema.end() && reference->is_string() && reference->get_ref<std::string&>().starts_with('#'))
      reference->get_ref<std::string&>().replace(0, 1, "#" + place);
  }
  if (schema.is_structured())
    for (json& part : schema) move_references(part, place);
}

/// What stands around the JSON of a call.
struct surroundings {
  std::string before, after;
};
surroundings around_call(const call_notation& by) {
  if (by.has_tags()) return {fmt::format("{}\n", by.tags.opening), fmt::format("\n{}", by.tags.closing)};
  return {std::string(by.sequence.first), std::string(by.sequence.last)};
}

/// Finds the arguments that are texts. Sorted, the parameters have a reference's place found fast.
class text_search {
 public:
  explicit text_search(const json& parameters) : parameters_(parameters) {}

  /// A reference that leads back to itself may have been taken for none of a text before that was found elsewhere: all
  /// are looked at anew as long as that brings more.
  std::vector<std::string> arguments() {
    std::vector<std::string> texts = arguments_at_first_sight();
    std::size_t known = 0;
    for (int rounds = 1; known < to_texts_.size() && rounds < most_rounds; ++rounds) {
      known = to_texts_.size();
      texts = arguments_at_first_sight();
    }
    return texts;
  }

 private:
  using sorted_json = nlohmann::json;
  static constexpr int most_depth = 64, most_rounds = 8;

  std::vector<std::string> arguments_at_first_sight() {
    followed_.clear();
    std::vector<std::string> texts;
    const sorted_json properties = parameters_.value("properties", sorted_json::object());
    for (const auto& [name, schema] : properties.items())
      if (takes_text(schema, 0)) texts.push_back(name);
    return texts;
  }
  /// Whether a text is among what a schema takes, as it is where an argument may be left out: {"anyOf": [{"type":
  /// "string"}, {"type": "null"}]}.
  bool takes_text(const sorted_json& schema, int depth) {
    if (!schema.is_object() || depth > most_depth) return false;
    const auto any = [&](const char* key, const auto& is_text) {
      const auto found = schema.find(key);
      return found != schema.end() && found->is_array() && std::any_of(found->begin(), found->end(), is_text);
    };
    const auto names_text = [](const sorted_json& type) { return type == "string"; };
    const auto is_text = [](const sorted_json& value) { return value.is_string(); };
    const auto is_taken = [&](const sorted_json& part) { return takes_text(part, depth + 1); };
    return names_text(schema.value("type", sorted_json())) || any("type", names_text) ||
           is_text(schema.value("const", sorted_json())) || any("enum", is_text) || any("anyOf", is_taken) ||
           any("oneOf", is_taken) || any("allOf", is_taken) || refers_to_text(schema, depth);
  }
  /// Each reference is followed once a round, since they may go in circles.
  bool refers_to_text(const sorted_json& schema, int depth) {
    const auto reference = schema.find("$ref");
    if (reference == schema.end() || !reference->is_string()) return false;
    const auto& to = reference->get_ref<const std::string&>();
    if (to_texts_.contains(to)) return true;
    const sorted_json* place = followed_.insert(to).second ? find(to) : nullptr;
    const bool is_text = place && takes_text(*place, depth + 1);
    if (is_text) to_texts_.insert(to);
    return is_text;
  }
  /// Null if there is no such place in the parameters.
  const sorted_json* find(const std::string& reference) const {
    if (!reference.starts_with('#')) return nullptr;
    try {
      const sorted_json::json_pointer pointer(percent_decoded(reference.substr(1)));
      return parameters_.contains(pointer) ? &parameters_.at(pointer) : nullptr;
    } catch (const sorted_json::exception&) {
      return nullptr;
    }
  }

  sorted_json parameters_;
  std::set<std::string> followed_, to_texts_;  ///< references: of this round; those that lead to a text
};

/// A call in this notation. `name`, `arguments`: schemas.
json call_schema(const call_notation& by, json name, json arguments) {
  return {{"type", "object"},
          {"properties", {{"name", std::move(name)}, {by.arguments_key, std::move(arguments)}}},
          {"required", {"name", by.arguments_key}},
          {"additionalProperties", false}};
}

/// What calls of the tools may look like.
json calls_schema(std::vector<described_tool> tools, const call_notation& by) {
  json calls = json::array();
  for (described_tool& each : tools) {
    move_references(each.parameters, fmt::format("/anyOf/{}/properties/{}", calls.size(), by.arguments_key));
    calls.push_back(call_schema(by, {{"const", each.name}}, std::move(each.parameters)));
  }
  return {{"anyOf", std::move(calls)}};
}

/// A strict tool's schema is kept to, or else refused; of another's as much is demanded as can be. `work`: what all
/// tools of the request took.
void make_demandable(described_tool& tool, std::size_t& work) {
  try {
    if (tool.is_strict)
      check_schema(tool.parameters.dump(), work);
    else
      tool.parameters = json::parse(loosened_schema(tool.parameters.dump(), work));
  } catch (const input_error& error) {
    refuse_field("tools", fmt::format("the parameters of the strict tool {}: {}", tool.name, error.what()),
                 "unsupported_value");
  }
}

/// The form of arguments alone.
output_constraint arguments_of(const described_tool& tool) {
  return {constraint_kind::json_schema, tool.parameters.dump()};
}

/// The form of an answer that must be a call of one of the tools.
output_constraint call_of(std::vector<described_tool> tools, const call_notation& by) {
  const auto [before, after] = around_call(by);
  return {constraint_kind::json_schema, calls_schema(std::move(tools), by).dump(), before, after};
}

/// The form of a text in which calls of strict tools keep to their schemas; none where none is strict, or where nothing
/// marks a call.
output_constraint strict_calls_of(std::vector<described_tool> tools, const call_notation& by) {
  const bool any = std::any_of(tools.begin(), tools.end(), [](const auto& each) { return each.is_strict; });
  if (!any || by.reads != call_text::json) return {};
  std::size_t work = 0;
  for (described_tool& each : tools)
    if (each.is_strict)
      make_demandable(each, work);
    else
      each.parameters = {{"type", "object"}};
  return {constraint_kind::calls, calls_schema(std::move(tools), by).dump(), std::string(by.tags.opening),
          std::string(by.tags.closing)};
}

/// The form of a call that the model may make or not. Its arguments are free, as in answers without a form where no
/// tool is strict.
tool_call_form free_call_of(const std::vector<tool_offer>& offers, const call_notation& by) {
  json names = json::array();
  for (const tool_offer& each : offers) names.push_back(each.name);
  const json call = call_schema(by, {{"enum", std::move(names)}}, {{"type", "object"}});
  const auto [before, after] = around_call(by);
  return {call.dump(), before, after};
}

/// The answer must be a call of one of these.
void demand_call(std::vector<described_tool> offers, tool_wishes& wishes) {
  std::size_t work = 0;
  for (described_tool& each : offers) make_demandable(each, work);
  const bool is_addressed = notation_of(wishes.style).address && offers.size() == 1;
  // Made to call, a model whose own calls are not known writes what is asked for as it writes any JSON. So does one
  // that has to choose whom to address, in a way that no form can have.
  if (!notation_of(wishes.style).has_forms && !is_addressed) wishes.style = tool_style::bare;
  if (is_addressed) wishes.called = offers.front().name;
  wishes.form = is_addressed ? arguments_of(offers.front()) : call_of(std::move(offers), notation_of(wishes.style));
}

bool is_free(const json& choice) {
  return choice == "auto" || choice == "none";
}

bool is_strict_tool(const json& tool) {
  const auto says_so = [](const json& object) { return object.is_object() && object.value("strict", json()) == true; };
  return says_so(tool) || (tool.is_object() && says_so(tool.value("function", json())));
}

}  // namespace

bool may_demand_calls(const request_fields& from) {
  const json *tools = from.find("tools"), *choice = from.find("tool_choice");
  if (!tools || !tools->is_array()) return false;
  const bool is_chosen =
      choice && !is_free(*choice) && !(choice->is_object() && is_free(choice->value("type", json())));
  return is_chosen || std::any_of(tools->begin(), tools->end(), is_strict_tool);
}

tool_wishes read_tools(const request_fields& from, tool_style style) {
  auto offers = read_offers(from);
  const json* given = from.find("tool_choice");
  json choice = given ? *given : json("auto");
  tool_wishes wishes;
  if (choice == "none") return wishes;
  if (choice != "auto" && offers.empty()) refuse_field("tool_choice", "tool_choice needs tools");
  if (choice.is_object() && choice.value("type", json()) == "allowed_tools") choice = narrow(offers, choice);
  for (const described_tool& each : offers)
    wishes.offers.push_back({each.name, text_search(each.parameters).arguments()});
  if (!from.boolean("parallel_tool_calls").value_or(true)) wishes.most_calls = 1;
  wishes.style = style;
  if (choice == "auto") {
    const call_notation& by = notation_of(style);
    if (!offers.empty() && by.has_forms) {
      wishes.call = free_call_of(wishes.offers, by);
      wishes.strict = strict_calls_of(std::move(offers), by);
      if (wishes.strict) wishes.call.schema = wishes.strict.text;
    }
  } else {
    if (choice != "required") offers = {named_by(choice, offers)};
    demand_call(std::move(offers), wishes);
  }
  return wishes;
}

}  // namespace troupe
