#include "model/grammar/schema_pair_impl.hpp"

#include <algorithm>
#include <cmath>

#include "base/error.hpp"
#include "model/grammar/schema_shape_impl.hpp"

namespace troupe::detail {
namespace {

using json = schema_json;

bool has(const json& list, const json& value) {
  return std::any_of(list.begin(), list.end(), [&](const json& each) { return is_same_value(each, value); });
}

json united(const json& a, const json& b) {
  json result = a;
  for (const json& each : b)
    if (!has(result, each)) result.push_back(each);
  return result;
}

/// What must all hold of a schema that says nothing else, or else the schema itself.
json parts_of(const json& schema) {
  const json* all = schema.size() == 1 ? member(schema, "allOf") : nullptr;
  return all && all->is_array() ? *all : json::array({schema});
}

/// Each part once: so schemas that extend each other and refer to themselves come back to one that is known.
json both(const json& a, const json& b) {
  if (a == b || b == true || a == false) return a;
  if (a == true || b == false) return b;
  const json parts = united(parts_of(a), parts_of(b));
  return parts.size() == 1 ? parts.front() : json{{"allOf", parts}};
}

json types_listed(const json& type) {
  return type.is_array() ? type : json::array({type});
}

json common_types(const json& a, const json& b) {
  json result = json::array();
  const json first = types_listed(a), second = types_listed(b);
  for (const json& each : first)
    if (has(second, each) || (each == "integer" && has(second, "number"))) result.push_back(each);
  if (has(second, "integer") && has(first, "number") && !has(result, "integer")) result.push_back("integer");
  return result;
}

/// The properties that both allow. One that only one of them names must also satisfy the other's additionalProperties.
json common_properties(const json& a, const json& b) {
  static const json none = json::object(), anything = true;
  const auto part = [](const json& schema, const char* key, const json& otherwise) -> const json& {
    const json* found = member(schema, key);
    return found ? *found : otherwise;
  };
  const json &first = part(a, "properties", none), &second = part(b, "properties", none);
  json result = json::object();
  for (const auto& [name, schema] : first.items()) {
    const json* other = member(second, name);
    result[name] = both(schema, other ? *other : part(b, "additionalProperties", anything));
  }
  for (const auto& [name, schema] : second.items())
    if (!first.contains(name)) result[name] = both(schema, part(a, "additionalProperties", anything));
  return result;
}

/// What an array's first items must satisfy, and all behind them.
std::pair<json, json> items_of(const json& schema) {
  return {schema.value("prefixItems", json::array()), schema.value("items", json(true))};
}

/// If only one of them has a schema for an item, that item must also satisfy what the other says of all further items.
void set_common_items(json& result, const json& a, const json& b) {
  const auto [first_a, others_a] = items_of(a);
  const auto [first_b, others_b] = items_of(b);
  json first = json::array();
  for (std::size_t i = 0; i < std::max(first_a.size(), first_b.size()); ++i)
    first.push_back(both(i < first_a.size() ? first_a[i] : others_a, i < first_b.size() ? first_b[i] : others_b));
  if (!first.empty()) result["prefixItems"] = std::move(first);
  result["items"] = both(others_a, others_b);
}

bool says_items(const json& schema) {
  return schema.contains("items") || schema.contains("prefixItems");
}

json intersected(const json& a, const json& b) {
  json result = json::array();
  for (const json& each : a)
    if (has(b, each)) result.push_back(each);
  return result;
}

json merged_keyword(const std::string& key, const json& a, const json& b, const std::string& where) {
  if (is_same_value(a, b)) return a;
  if (key == "type") return common_types(a, b);
  if (key == "required") return united(a, b);
  if (key == "enum") return intersected(a, b);
  if (key == "additionalProperties") return both(a, b);
  if (key.starts_with("min") || key == "exclusiveMinimum") return a < b ? b : a;
  if (key.starts_with("max") || key == "exclusiveMaximum") return a < b ? a : b;
  refuse("{}: two schemas that must both hold say {}: write it once", where, key);
}

const char* type_of(const json& value) {
  if (value.is_number_integer()) return "integer";
  if (value.is_number()) return std::floor(value.get<double>()) == value.get<double>() ? "integer" : "number";
  return value.type_name();
}

std::optional<json> values_of(const json& schema) {
  if (const json* only = member(schema, "const")) return json::array({*only});
  if (const json* list = member(schema, "enum")) return *list;
  return std::nullopt;
}

std::optional<json> types_of(const json& schema) {
  if (const auto values = values_of(schema)) {
    json types = json::array();
    for (const json& each : *values) types.push_back(type_of(each));
    return types;
  }
  if (const json* type = member(schema, "type")) return types_listed(*type);
  return std::nullopt;
}

bool is_required(const json& schema, const std::string& name) {
  const json* required = member(schema, "required");
  return required && has(*required, name);
}

bool only_objects(const json& schema) {
  const auto types = types_of(schema);
  return types && std::all_of(types->begin(), types->end(), [](const json& type) { return type == "object"; });
}

bool values_differ(const json& a, const json& b) {
  const auto first = values_of(a), second = values_of(b);
  if (first && second) return intersected(*first, *second).empty();
  const auto types = types_of(a), others = types_of(b);
  return types && others && common_types(*types, *others).empty();
}

/// A required property tells them apart, by its value or by not being allowed in the other.
bool property_differs(const json& a, const json& b) {
  const json* required = member(a, "required");
  const json* mine = member(a, "properties");
  const json* others = member(b, "properties");
  if (!required) return false;
  for (const json& name : *required) {
    const json* other = others ? member(*others, name.get<std::string>()) : nullptr;
    const json* closed = member(b, "additionalProperties");
    if (!other && closed && *closed == false) return true;
    const json* own = mine ? member(*mine, name.get<std::string>()) : nullptr;
    if (own && other && own->is_object() && other->is_object() && is_required(b, name) && values_differ(*own, *other))
      return true;
  }
  return false;
}

}  // namespace

std::optional<schema_json> merged(const schema_json& a, const schema_json& b, const std::string& where) {
  json result = a;
  const bool objects = a.contains("properties") || b.contains("properties");
  if (objects) result["properties"] = common_properties(a, b);
  if (says_items(a) && says_items(b)) set_common_items(result, a, b);
  for (const auto& [key, value] : b.items()) {
    if (key == "properties" || ((key == "items" || key == "prefixItems") && says_items(a))) continue;
    const json* mine = member(a, key);
    if (mine && key == "const" && !is_same_value(*mine, value)) return std::nullopt;
    result[key] = mine ? merged_keyword(key, *mine, value, where) : value;
  }
  for (const char* list : {"type", "enum"})
    if (const json* left = member(result, list); left && left->is_array() && left->empty()) return std::nullopt;
  return result;
}

bool are_apart(const schema_json& a, const schema_json& b) {
  if (values_differ(a, b)) return true;
  return only_objects(a) && only_objects(b) && (property_differs(a, b) || property_differs(b, a));
}

}  // namespace troupe::detail
