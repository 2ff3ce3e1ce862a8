#include "model/grammar/loose_schema.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "model/formats/json_input.hpp"
#include "model/grammar/schema_grammar.hpp"
#include "model/grammar/schema_scalar_impl.hpp"
#include "model/grammar/schema_shape_impl.hpp"

namespace troupe {
namespace {

using json = detail::schema_json;

bool makes_form(std::string_view schema, std::size_t& work) {
  try {
    check_schema(schema, work);
    return true;
  } catch (const input_error&) {
    return false;
  }
}

void loosen_text(json& schema) {
  const json* pattern = detail::member(schema, "pattern");
  if (pattern && pattern->is_string() && !detail::can_be_written(pattern->get<std::string>())) schema.erase("pattern");
  if (schema.contains("pattern") || schema.contains("format"))
    for (const char* length : {"minLength", "maxLength"}) schema.erase(length);
}

/// What stands beside a list of values can only rule some of them out.
void loosen_list(json& schema) {
  if (!schema.contains("enum") && !schema.contains("const")) return;
  for (const char* key : {"format", "pattern", "minLength", "maxLength", "minimum", "maximum", "exclusiveMinimum",
                          "exclusiveMaximum", "multipleOf"})
    schema.erase(key);
}

/// A type that nobody knows may mean any value, as "any" does: what a list names beside it rules none out.
bool has_unknown_type(const json& types) {
  if (types.is_string()) return !detail::is_known_type(types.get_ref<const std::string&>());
  return std::any_of(types.begin(), types.end(), has_unknown_type);
}

bool can_be_kept(const std::string& key, const json& value, const json& schema) {
  if (detail::is_unsupported(key, value, schema) || detail::is_misshapen(key, value)) return false;
  return key != "type" || !has_unknown_type(value);
}

void loosen(json& schema);

void loosen_part(json& schema) {
  if (!schema.is_object() && !schema.is_boolean()) schema = true;
  loosen(schema);
}

void loosen(json& schema) {
  if (!schema.is_object()) return;
  for (auto each = schema.begin(); each != schema.end();)
    each = can_be_kept(each.key(), each.value(), schema) ? std::next(each) : schema.erase(each);
  loosen_list(schema);
  loosen_text(schema);
  for (const char* key : {"properties", "$defs", "definitions"})
    if (const auto parts = schema.find(key); parts != schema.end() && parts->is_object())
      for (json& part : *parts) loosen_part(part);
  for (const char* key : {"items", "additionalItems", "additionalProperties"})  // older drafts have lists of items
    if (const auto part = schema.find(key); part != schema.end() && !part->is_array()) loosen_part(*part);
  for (const char* key : {"items", "prefixItems", "allOf", "anyOf", "oneOf"})
    if (const auto parts = schema.find(key); parts != schema.end() && parts->is_array())
      for (json& part : *parts) loosen_part(part);
}

/// "" of what is too much to read.
std::string without_unsupported(std::string_view schema) {
  try {
    json loose = detail::parse_json_as<json>(schema, "the schema", detail::schema_limits);
    detail::drop_nulls(loose);
    loosen(loose);
    return loose.dump();
  } catch (const input_error&) {
    return "";
  }
}

}  // namespace

void check_schema(std::string_view schema, std::size_t& work) {
  grammar_builder unused;
  (void)detail::read_schema(unused, schema, work);
}

std::string loosened_schema(std::string_view schema, std::size_t& work) {
  if (makes_form(schema, work)) return std::string(schema);
  const std::string text = without_unsupported(schema);
  return makes_form(text, work) ? text : R"({"type":"object"})";
}

}  // namespace troupe
