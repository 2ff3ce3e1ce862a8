#include "tests/model/grammar/schema_validator.hpp"

#include <algorithm>
#include <cmath>
#include <regex>

#include "base/to_size.hpp"

namespace troupe::test {
namespace {

using json = nlohmann::ordered_json;

bool has_type(const json& value, const std::string& type) {
  if (type == "integer") return value.is_number() && value.get<double>() == std::floor(value.get<double>());
  return value.type_name() == type;
}

std::size_t characters(const std::string& text) {
  return to_size(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

bool number_fits(const json& value, const json& schema) {
  const double x = value.get<double>();
  return !(schema.contains("minimum") && x < schema["minimum"].get<double>()) &&
         !(schema.contains("maximum") && x > schema["maximum"].get<double>()) &&
         !(schema.contains("exclusiveMinimum") && x <= schema["exclusiveMinimum"].get<double>()) &&
         !(schema.contains("exclusiveMaximum") && x >= schema["exclusiveMaximum"].get<double>());
}

bool string_fits(const std::string& text, const json& schema) {
  return !(schema.contains("minLength") && characters(text) < schema["minLength"].get<std::size_t>()) &&
         !(schema.contains("maxLength") && characters(text) > schema["maxLength"].get<std::size_t>()) &&
         !(schema.contains("pattern") && !std::regex_search(text, std::regex(schema["pattern"].get<std::string>())));
}

bool array_fits(const json& list, const json& schema, const json& document) {
  if (schema.contains("minItems") && list.size() < schema["minItems"].get<std::size_t>()) return false;
  if (schema.contains("maxItems") && list.size() > schema["maxItems"].get<std::size_t>()) return false;
  const json first = schema.value("prefixItems", json::array());
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (i < first.size() ? !satisfies(list[i], first[i], document)
                         : schema.contains("items") && !satisfies(list[i], schema["items"], document))
      return false;
  }
  return true;
}

bool object_fits(const json& object, const json& schema, const json& document) {
  for (const json& name : schema.value("required", json::array()))
    if (!object.contains(name.get<std::string>())) return false;
  const json properties = schema.value("properties", json::object());
  for (const auto& [name, value] : object.items()) {
    if (properties.contains(name)) {
      if (!satisfies(value, properties[name], document)) return false;
    } else if (schema.contains("additionalProperties") && !satisfies(value, schema["additionalProperties"], document)) {
      return false;
    }
  }
  return true;
}

bool type_fits(const json& value, const json& type) {
  if (type.is_string()) return has_type(value, type.get<std::string>());
  return std::any_of(type.begin(), type.end(),
                     [&](const json& each) { return has_type(value, each.get<std::string>()); });
}

bool combined_fit(const json& value, const json& schema, const json& document) {
  const auto fitting = [&](const char* key) {
    return std::count_if(schema[key].begin(), schema[key].end(),
                         [&](const json& each) { return satisfies(value, each, document); });
  };
  if (schema.contains("$ref") &&
      !satisfies(value, document.at(json::json_pointer(schema["$ref"].get<std::string>().substr(1))), document))
    return false;
  return !(schema.contains("allOf") && fitting("allOf") != static_cast<std::ptrdiff_t>(schema["allOf"].size())) &&
         !(schema.contains("anyOf") && fitting("anyOf") == 0) && !(schema.contains("oneOf") && fitting("oneOf") != 1);
}

}  // namespace

bool satisfies(const json& value, const json& schema, const json& document) {
  if (schema.is_boolean()) return schema.get<bool>();
  if (schema.contains("type") && !type_fits(value, schema["type"])) return false;
  if (schema.contains("const") && value != schema["const"]) return false;
  if (schema.contains("enum") && std::find(schema["enum"].begin(), schema["enum"].end(), value) == schema["enum"].end())
    return false;
  if (value.is_number() && !number_fits(value, schema)) return false;
  if (value.is_string() && !string_fits(value.get<std::string>(), schema)) return false;
  if (value.is_array() && !array_fits(value, schema, document)) return false;
  if (value.is_object() && !object_fits(value, schema, document)) return false;
  return combined_fit(value, schema, document);
}

}  // namespace troupe::test
