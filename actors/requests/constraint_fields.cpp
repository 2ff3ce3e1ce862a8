#include "actors/requests/constraint_fields.hpp"

#include <algorithm>
#include <array>

#include <fmt/ranges.h>

#include "actors/requests/request_fields_impl.hpp"

namespace troupe {
namespace {

std::string text_of(const json& value, std::string_view key) {
  if (!value.is_string()) refuse("{} should be a text", key);
  return value.get<std::string>();
}

output_constraint schema_constraint(const json& schema, std::string_view key) {
  if (schema.is_string()) return {constraint_kind::json_schema, schema.get<std::string>()};
  if (!schema.is_object() && !schema.is_boolean()) refuse("{} should be a JSON schema", key);
  return {constraint_kind::json_schema, schema.dump()};
}

output_constraint choice_constraint(const json& list, std::string_view key) {
  if (!list.is_array()) refuse("{} should be a list of texts", key);
  return {constraint_kind::choice, list.dump()};
}

/// {"type": "text" | "json_object" | "json_schema", "json_schema": {"schema"}}, or as in LoRAX and other servers
/// {"type": "json_object", "schema"}, or as in text-generation-inference {"type": "json_object" | "json" | "regex",
/// "value"}.
output_constraint of_response_format(const json& format) {
  if (!format.is_object()) refuse("response_format should be an object");
  const request_fields from(format);
  const json* type = from.find("type");
  const std::string name = type ? text_of(*type, "response_format.type") : "text";
  if (name == "text") return {};
  const json* value = from.find("value");
  if (name == "regex" && value) return {constraint_kind::regex, text_of(*value, "response_format.value")};
  if (name == "json_object" || (name == "json" && value)) {
    if (value) return schema_constraint(*value, "response_format.value");
    const json* schema = from.find("schema");
    return schema ? schema_constraint(*schema, "response_format.schema")
                  : output_constraint{constraint_kind::json_object, {}};
  }
  if (name != "json_schema")
    refuse("response_format {} is not served here: use text, json_object or json_schema", name.substr(0, 40));
  const json* named = from.find("json_schema");
  const json* schema = named && named->is_object() ? request_fields(*named).find("schema") : nullptr;
  if (!schema) refuse("response_format.json_schema should be an object with a schema");
  return schema_constraint(*schema, "response_format.json_schema.schema");
}

constexpr std::array structured_kinds{"json", "regex", "choice", "grammar", "json_object"};

/// vLLM's newer form: {"json"}, {"regex"}, {"choice"}, {"grammar"} or {"json_object": true}.
output_constraint of_structured_outputs(const json& outputs) {
  if (!outputs.is_object()) refuse("structured_outputs should be an object");
  const request_fields from(outputs);
  const auto is_given = [&](const char* key) {
    const json* value = from.find(key);
    return value && *value != false;
  };
  for (const char* option : {"whitespace_pattern", "disable_any_whitespace"})
    if (is_given(option)) refuse("structured_outputs.{} is not served here: leave it out", option);
  if (std::count_if(structured_kinds.begin(), structured_kinds.end(), is_given) > 1)
    refuse("structured_outputs has several of {}: an answer has one form: leave one",
           fmt::join(structured_kinds, ", "));
  if (const json* schema = from.find("json")) return schema_constraint(*schema, "structured_outputs.json");
  if (const json* regex = from.find("regex"))
    return {constraint_kind::regex, text_of(*regex, "structured_outputs.regex")};
  if (const json* choice = from.find("choice")) return choice_constraint(*choice, "structured_outputs.choice");
  if (const json* grammar = from.find("grammar"))
    return {constraint_kind::grammar, text_of(*grammar, "structured_outputs.grammar")};
  if (const json* any = from.find("json_object"); any && *any == true) return {constraint_kind::json_object, {}};
  refuse("structured_outputs should have json, regex, choice, grammar or json_object");
}

output_constraint form_said_by(std::string_view key, const json& value) {
  if (key == "response_format") return of_response_format(value);
  if (key == "guided_json" || key == "json_schema") return schema_constraint(value, key);
  if (key == "guided_regex" || key == "regex") return {constraint_kind::regex, text_of(value, key)};
  if (key == "guided_choice") return choice_constraint(value, key);
  if (key == "guided_grammar" || key == "ebnf" || key == "grammar")
    return {constraint_kind::grammar, text_of(value, key)};
  return of_structured_outputs(value);
}

constexpr const char* unsupported = "unsupported_value";

output_constraint of_field(std::string_view key, const json& value) {
  try {
    return form_said_by(key, value);
  } catch (const input_error& error) {
    refuse_field(key, error.what(), unsupported);
  }
}

}  // namespace

output_constraint read_constraint(const request_fields& from) {
  output_constraint form;
  std::string_view said_by;
  for (const std::string_view key : constraint_keys) {
    const json* value = from.find(key);
    if (!value || *value == "") continue;
    output_constraint next = of_field(key, *value);
    if (!next || form == next) continue;
    if (form)
      refuse_field(key, fmt::format("{} beside {}: an answer has one form: leave one out", key, said_by), unsupported);
    form = std::move(next);
    said_by = key;
  }
  return form;
}

}  // namespace troupe
