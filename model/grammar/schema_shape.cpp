#include <algorithm>
#include <array>
#include <cmath>

#include "base/error.hpp"
#include "base/percent_decoded.hpp"
#include "model/grammar/schema_pair_impl.hpp"
#include "model/grammar/schema_shape_impl.hpp"

namespace troupe::detail {
namespace {

using json = schema_json;

constexpr int most_depth = 48;
constexpr std::size_t most_branches = 256;
constexpr std::size_t most_work = 10'000'000;  // a fifth of a second
constexpr std::size_t work_of_pair = 50;       // two schemas are put or held against each other, however small they are

constexpr std::array combining{"$ref", "allOf", "anyOf", "oneOf"};
constexpr std::array constraining{
    "type",   "enum",     "const",    "properties",  "required",         "additionalProperties",
    "items",  "minItems", "maxItems", "minLength",   "maxLength",        "pattern",
    "format", "minimum",  "maximum",  "prefixItems", "exclusiveMinimum", "exclusiveMaximum"};
constexpr std::array unsupported{"not",
                                 "if",
                                 "then",
                                 "else",
                                 "patternProperties",
                                 "propertyNames",
                                 "uniqueItems",
                                 "contains",
                                 "minContains",
                                 "maxContains",
                                 "unevaluatedProperties",
                                 "unevaluatedItems",
                                 "minProperties",
                                 "maxProperties",
                                 "multipleOf",
                                 "dependentRequired",
                                 "dependentSchemas",
                                 "dependencies",
                                 "$dynamicRef",
                                 "$recursiveRef"};

template <class List>
bool is_in(const List& list, std::string_view key) {
  return std::find(list.begin(), list.end(), key) != list.end();
}

/// Whether an unsupported keyword of `schema` has a value that changes nothing.
bool says_nothing(std::string_view key, const json& value, const json& schema) {
  if (key == "uniqueItems") return value == false;
  if (key == "unevaluatedProperties" || key == "unevaluatedItems") return value == true;
  if (key == "multipleOf") {
    const json types = schema.value("type", json("number"));  // one, or a list
    return value == 1 && std::find(types.begin(), types.end(), json("number")) == types.end();
  }
  if (key == "minProperties") return value == 0;
  if (key == "propertyNames") return value == true || value == json::object() || value == json{{"type", "string"}};
  const bool names_parts = key == "patternProperties" || key.starts_with("depend");
  return names_parts && value == json::object();
}

bool are_texts(const json& list) {
  return list.is_array() && std::all_of(list.begin(), list.end(), [](const json& each) { return each.is_string(); });
}

/// What a keyword's value should be, where it is something else.
const char* misshapen(std::string_view key, const json& value) {
  if (key == "type" && !value.is_string() && !are_texts(value)) return "a type or a list of types";
  if (key == "properties" && !value.is_object()) return "an object";
  if (key == "required" && !are_texts(value)) return "a list of names";
  if (key == "enum" && !value.is_array()) return "a list";
  if ((key == "pattern" || key == "format" || key == "$ref") && !value.is_string()) return "a text";
  if ((key == "prefixItems" || key == "allOf" || key == "anyOf" || key == "oneOf") &&
      (!value.is_array() || value.empty()))
    return "a list that is not empty";
  const bool bound = key.starts_with("exclusive") || key == "minimum" || key == "maximum";
  if (bound && (!value.is_number() || !std::isfinite(value.get<double>()))) return "a number";
  const bool count = key == "minItems" || key == "maxItems" || key == "minLength" || key == "maxLength";
  if (count && (!value.is_number() || !(value.get<double>() >= 0 && value.get<double>() <= 1e6) ||
                value.get<double>() != std::floor(value.get<double>())))
    return "a whole number from 0 to 1000000";
  return nullptr;
}

using branch_list = std::vector<json>;

/// Values in a schema, itself included.
std::size_t weight_of(const json& value) {
  std::size_t weight = 1;
  if (value.is_structured())
    for (const json& each : value) weight += weight_of(each);
  return weight;
}

void spend(std::size_t& work, std::size_t more, const std::string& where) {
  work += more;
  if (work > most_work) refuse("{}: its references and choices take too much work to resolve: simplify it", where);
}

branch_list crossed(const branch_list& a, const branch_list& b, const std::string& where, std::size_t& work) {
  branch_list result;
  for (const json& first : a)
    for (const json& second : b) {
      spend(work, work_of_pair + weight_of(first) * weight_of(second), where);
      if (auto one = merged(first, second, where)) result.push_back(std::move(*one));
      if (result.size() > most_branches)
        refuse("{}: its choices make more than {} cases: use fewer", where, most_branches);
    }
  return result;
}

bool all_apart(const branch_list& first, const branch_list& second, const std::string& where, std::size_t& work) {
  for (const json& a : first)
    for (const json& b : second) {
      spend(work, work_of_pair + weight_of(a) * weight_of(b), where);
      if (!are_apart(a, b)) return false;
    }
  return true;
}

/// Throws input_error where a value could satisfy two of the choices.
void check_apart(const std::vector<branch_list>& choices, const std::string& where, std::size_t& work) {
  for (std::size_t i = 0; i < choices.size(); ++i)
    for (std::size_t k = i + 1; k < choices.size(); ++k)
      if (!all_apart(choices[i], choices[k], where, work))
        refuse("{}: a value could satisfy the choices {} and {} of oneOf: use anyOf, or tell them apart by a property",
               where, i, k);
}

branch_list joined(const std::vector<branch_list>& choices, const std::string& where) {
  branch_list result;
  for (const branch_list& each : choices) result.insert(result.end(), each.begin(), each.end());
  if (result.size() > most_branches) refuse("{}: its choices make more than {} cases: use fewer", where, most_branches);
  return result;
}

/// Older drafts write prefixItems as a list of items, and the items behind those as additionalItems.
void set_first_items(json& own, const json& schema, const std::string& where) {
  const json* items = member(schema, "items");
  if (!items || !items->is_array()) return;
  if (schema.contains("prefixItems")) refuse("{}: items is a list beside prefixItems: use one", where);
  own["prefixItems"] = *items;
  own.erase("items");
  if (const json* others = member(schema, "additionalItems")) own["items"] = *others;
}

/// What these have are no schemas, but values.
bool has_values(std::string_view key) {
  return key == "const" || key == "enum" || key == "default" || key == "examples" || key == "example";
}

/// What these have are schemas by names, which may be those of keywords.
bool has_named_schemas(std::string_view key) {
  return key == "properties" || key == "$defs" || key == "definitions";
}

}  // namespace

/// Wherever a reference may lead. The rest is moved to an object of its own: erasing one keyword after the other takes
/// quadratic time.
void drop_nulls(schema_json& schema) {
  if (schema.is_array())
    for (json& part : schema) drop_nulls(part);
  if (!schema.is_object()) return;
  json::object_t kept;
  for (auto& [key, value] : schema.get_ref<json::object_t&>()) {
    if (value.is_null() && key != "const") continue;
    if (has_named_schemas(key) && value.is_object()) {
      for (json& part : value) drop_nulls(part);
    } else if (!has_values(key)) {
      drop_nulls(value);
    }
    kept.emplace_back(key, std::move(value));
  }
  schema.swap(kept);
}

bool is_misshapen(std::string_view key, const schema_json& value) {
  return misshapen(key, value) != nullptr;
}

bool is_unsupported(std::string_view key, const schema_json& value, const schema_json& schema) {
  return is_in(unsupported, key) && !says_nothing(key, value, schema);
}

void check_schema_keywords(const schema_json& schema, const std::string& where) {
  if (schema.is_boolean()) return;
  if (!schema.is_object()) refuse("{}: a schema is an object, true or false", where);
  for (const auto& [key, value] : schema.items()) {
    if (is_unsupported(key, value, schema)) refuse("{}: {} is not supported: leave it out", where, key);
    if (const char* wanted = misshapen(key, value)) refuse("{}: {} should be {}", where, key, wanted);
  }
}

bool is_constraining(std::string_view key) {
  return is_in(constraining, key);
}

bool says_only(const schema_json& schema, std::string_view keyword) {
  for (const auto& [key, value] : schema.items())
    if (key != keyword && (is_in(combining, key) || is_constraining(key))) return false;
  return schema.contains(keyword);
}

const schema_json& schema_document::find(const std::string& reference, const std::string& where) const {
  if (!reference.starts_with("#"))
    refuse("{}: $ref {}: only references into the schema itself (#/…) are followed", where, reference);
  try {
    const schema_json::json_pointer pointer(percent_decoded(reference.substr(1)));
    if (root_.contains(pointer)) return root_.at(pointer);
  } catch (const nlohmann::json::exception&) {
  }
  refuse("{}: $ref {}: there is no such place in the schema", where, reference);
}

std::vector<schema_json> schema_document::branches(const schema_json& schema, const std::string& where,
                                                   int depth) const {
  if (depth > most_depth) refuse("{}: schemas refer to each other without end", where);
  spend(work_, weight_of(schema), where);
  check_schema_keywords(schema, where);
  if (schema == false) return {};
  json own = json::object();
  if (!schema.is_object()) return {own};
  for (const auto& [key, value] : schema.items())
    if (is_constraining(key)) own[key] = value;
  set_first_items(own, schema, where);
  branch_list all{own};
  if (const json* reference = member(schema, "$ref"))
    all = crossed(all, branches(find(reference->get<std::string>(), where), where, depth + 1), where, work_);
  if (const json* list = member(schema, "allOf"))
    for (const json& each : *list) all = crossed(all, branches(each, where, depth + 1), where, work_);
  for (const char* key : {"anyOf", "oneOf"}) {
    const json* list = member(schema, key);
    if (!list) continue;
    std::vector<branch_list> choices;
    for (const json& each : *list) choices.push_back(branches(each, where, depth + 1));
    if (std::string_view(key) == "oneOf") check_apart(choices, where, work_);
    all = crossed(all, joined(choices, where), where, work_);
  }
  return all;
}

void schema_document::check_one_of(const schema_json& choices, const std::string& where) const {
  std::vector<branch_list> all;
  for (const json& each : choices) all.push_back(branches(each, where, 1));
  check_apart(all, where, work_);
}

}  // namespace troupe::detail
