#include "model/grammar/loose_schema.hpp"

#include <algorithm>
#include <iterator>

#include "base/error.hpp"
#include "model/formats/json_input.hpp"
#include "model/grammar/schema_grammar.hpp"
#include "model/grammar/schema_scalar_impl.hpp"
#include "model/grammar/schema_shape_impl.hpp"

namespace troupe {
namespace {

using json = detail::schema_json;

/// Throws input_error where nothing satisfies a rule.
void check_rule(grammar_builder& to, grammar_builder::rule_id rule) {
  (void)to.finish(rule, byte_set().set(), "the schema");
}

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
  for (auto each = schema.begin(); each != schema.end();) {
    const bool stays =
        !detail::is_constraining(each.key()) || each.key() == "type" || each.key() == "enum" || each.key() == "const";
    each = stays ? std::next(each) : schema.erase(each);
  }
}

void loosen_numbers(json& schema) {
  for (const char* key : {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"})
    if (const json* bound = detail::member(schema, key); bound && !detail::can_be_held(key, *bound)) schema.erase(key);
}

/// A value may satisfy several choices.
void loosen_choices(json& schema) {
  const json* choices = detail::member(schema, "oneOf");
  if (choices && !schema.contains("anyOf")) schema["anyOf"] = json(*choices);
  schema.erase("oneOf");
}

void loosen_items(json& schema) {
  const json* items = detail::member(schema, "items");
  if (items && items->is_array() && schema.contains("prefixItems")) schema.erase("items");
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

/// The schemas within a schema.
template <class Act>
void each_part(json& schema, Act act) {
  for (const char* key : {"properties", "$defs", "definitions"})
    if (const auto parts = schema.find(key); parts != schema.end() && parts->is_object())
      for (json& part : *parts) act(part);
  for (const char* key : {"items", "additionalItems", "additionalProperties"})  // older drafts have lists of items
    if (const auto part = schema.find(key); part != schema.end() && !part->is_array()) act(*part);
  for (const char* key : {"items", "prefixItems", "allOf", "anyOf"})
    if (const auto parts = schema.find(key); parts != schema.end() && parts->is_array())
      for (json& part : *parts) act(part);
}

void loosen(json& schema) {
  if (!schema.is_object() && !schema.is_boolean()) schema = true;
  if (!schema.is_object()) return;
  for (auto each = schema.begin(); each != schema.end();)
    each = can_be_kept(each.key(), each.value(), schema) ? std::next(each) : schema.erase(each);
  loosen_choices(schema);
  loosen_items(schema);
  loosen_list(schema);
  loosen_text(schema);
  loosen_numbers(schema);
  each_part(schema, loosen);
}

bool leads_somewhere(const json& reference, const detail::schema_document& document) {
  try {
    (void)document.find(reference.get<std::string>(), "$ref");
    return true;
  } catch (const input_error&) {
    return false;
  }
}

void drop_lost_references(json& schema, const detail::schema_document& document) {
  if (!schema.is_object()) return;
  const json* reference = detail::member(schema, "$ref");
  if (reference && !leads_somewhere(*reference, document)) schema.erase("$ref");
  each_part(schema, [&](json& part) { drop_lost_references(part, document); });
}

/// Tries each part of a schema by itself, so that one of which no form can be made does not cost the others.
class part_loosener {
 public:
  part_loosener(const json& whole, std::size_t& work)
      : document_(whole, work), bytes_(whole.dump().size()), work_(work) {}

  void loosen(json& part) {
    if (makes_form(part) || !part.is_object()) return;
    each_part(part, [&](json& each) { loosen(each); });
    for (const char* key : {"allOf", "anyOf", "$ref"}) {
      if (makes_form(part)) return;
      part.erase(key);
    }
    if (!makes_form(part)) part = part.contains("type") ? json{{"type", part["type"]}} : json(true);
  }

 private:
  static constexpr std::size_t work_of_byte = 20;

  /// What a reference leads to may be all of the document.
  bool makes_form(const json& part) {
    const std::string text = part.dump();
    work_ += work_of_byte * (text.find("\"$ref\"") == text.npos ? text.size() : text.size() + bytes_);
    try {
      grammar_builder to;
      check_rule(to, detail::write_schema(to, document_, part));
      return true;
    } catch (const input_error&) {
      return false;
    }
  }

  detail::schema_document document_;
  std::size_t bytes_;
  std::size_t& work_;
};

/// Definitions first, since others refer to them.
void loosen_parts(json& schema, std::size_t& work) {
  for (const char* key : {"$defs", "definitions"})
    if (const auto parts = schema.find(key); parts != schema.end() && parts->is_object()) {
      part_loosener each(schema, work);
      for (json& part : *parts) each.loosen(part);
    }
  part_loosener(schema, work).loosen(schema);
}

/// "" of what is too much to read, or where nothing is left.
std::string without_unsupported(std::string_view schema, std::size_t& work) {
  try {
    json loose = detail::parse_json_as<json>(schema, "the schema", detail::schema_limits);
    detail::drop_nulls(loose);
    loosen(loose);
    drop_lost_references(loose, detail::schema_document(loose, work));
    if (std::string text = loose.dump(); makes_form(text, work)) return loose.is_object() ? text : "";
    loosen_parts(loose, work);
    std::string text = loose.dump();
    return loose.is_object() && makes_form(text, work) ? text : "";
  } catch (const input_error&) {
    return "";
  }
}

}  // namespace

void check_schema(std::string_view schema, std::size_t& work) {
  grammar_builder to;
  check_rule(to, detail::read_schema(to, schema, work));
}

std::string loosened_schema(std::string_view schema, std::size_t& work) {
  if (makes_form(schema, work)) return std::string(schema);
  const std::string text = without_unsupported(schema, work);
  return text.empty() ? R"({"type":"object"})" : text;
}

}  // namespace troupe
