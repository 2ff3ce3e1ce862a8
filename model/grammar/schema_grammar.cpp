#include "model/grammar/schema_grammar.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <deque>
#include <map>
#include <set>
#include <utility>

#include "base/error.hpp"
#include "model/formats/json_input.hpp"
#include "model/grammar/json_grammar.hpp"
#include "model/grammar/schema_scalar_impl.hpp"

namespace troupe::detail {
namespace {

using json = schema_json;
using piece = grammar_builder::piece;
using rule_id = grammar_builder::rule_id;

constexpr std::array all_types{"object", "array", "string", "number", "boolean", "null"};
constexpr std::size_t most_schemas = 20'000;
constexpr std::size_t most_next = 1000;  // members; an automaton's state has room for so many ways and a few more

constexpr std::array<std::pair<const char*, std::array<const char*, 5>>, 4> keywords_of_types{{
    {"object", {"properties", "required", "additionalProperties"}},
    {"array", {"items", "prefixItems", "minItems", "maxItems"}},
    {"string", {"minLength", "maxLength", "pattern", "format"}},
    {"number", {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"}},
}};

std::string known_type(const std::string& type, const std::string& where) {
  if (!is_known_type(type)) refuse("{}: there is no type {}", where, type);
  return type;
}

/// Those that a schema names, or else those that its keywords speak of, or else all.
std::vector<std::string> allowed_types(const json& schema, const std::string& where) {
  std::vector<std::string> types;
  if (const json* listed = member(schema, "type")) {
    if (listed->is_string()) return {known_type(listed->get<std::string>(), where)};
    for (const json& each : *listed) types.push_back(known_type(each.get<std::string>(), where));
    return types;
  }
  for (const auto& [type, keywords] : keywords_of_types)
    if (std::any_of(keywords.begin(), keywords.end(), [&](const char* key) { return key && schema.contains(key); }))
      types.push_back(type);
  if (types.empty()) types.assign(all_types.begin(), all_types.end());
  return types;
}

bool has_type(const json& value, const std::string& type) {
  if (type == "integer")
    return value.is_number_integer() || (value.is_number() && value.get<double>() == std::floor(value.get<double>()));
  return type == value.type_name();
}

bool is_annotation(const std::string& key, const json& value) {
  return key == "format" && value.is_string() && !detail::is_known_format(value.get<std::string>());
}

/// The values of "enum" and "const", as they are written.
std::vector<std::string> listed_texts(const json& schema, const std::string& where) {
  for (const auto& [key, value] : schema.items())
    if (key != "enum" && key != "const" && key != "type" && !is_annotation(key, value))
      refuse("{}: {} beside a list of values is not supported: leave out the values that it rules out", where, key);
  const json* only = member(schema, "const");
  const json values = only ? json::array({*only}) : schema["enum"];
  const auto types = schema.contains("type") ? allowed_types(schema, where) : std::vector<std::string>();
  std::vector<std::string> texts;
  for (const json& each : values) {
    const bool typed = types.empty() ||
                       std::any_of(types.begin(), types.end(), [&](const auto& type) { return has_type(each, type); });
    const bool listed = !only || !schema.contains("enum") ||
                        std::any_of(schema["enum"].begin(), schema["enum"].end(),
                                    [&](const json& other) { return is_same_value(other, each); });
    if (typed && listed) texts.push_back(each.dump());
  }
  return texts;
}

class schema_writer {
 public:
  schema_writer(grammar_builder& to, const schema_document& document) : to_(to), text_(to), document_(document) {}

  rule_id write(const json& part) {
    const rule_id root = rule_of(part, "the schema");
    while (!open_.empty()) {
      const auto [schema, rule, where] = std::move(open_.front());
      open_.pop_front();
      to_.define(rule, choices(schema, where));
    }
    return root;
  }

 private:
  struct open_rule {
    json schema;
    rule_id rule;
    std::string where;
  };

  /// Schemas are written one after another, however deep they lie; equal ones once.
  rule_id rule_of(const json& schema, std::string where) {
    const auto [known, is_new] = rules_.try_emplace(schema.dump(), -1);
    if (!is_new) return known->second;
    if (rules_.size() > most_schemas)
      refuse("{}: the schema is too large: it has more than {} parts", where, most_schemas);
    if (where.size() > 200) where = "…" + where.substr(where.size() - 150);
    known->second = to_.declare();
    open_.push_back({schema, known->second, std::move(where)});
    return known->second;
  }
  /// A reference is looked up once, however large what it refers to is.
  rule_id referred(const std::string& reference, const std::string& where) {
    const auto [known, is_new] = references_.try_emplace(reference, -1);
    if (is_new) known->second = rule_of(document_.find(reference, where), where);
    return known->second;
  }
  piece call(const json& schema, std::string where) { return to_.call(rule_of(schema, std::move(where))); }

  piece choices(const json& schema, const std::string& where) {
    check_schema_keywords(schema, where);
    if (schema.is_object() && says_only(schema, "$ref"))
      return to_.call(referred(schema["$ref"].get<std::string>(), where));
    for (const char* key : {"anyOf", "oneOf"}) {
      if (!schema.is_object() || !says_only(schema, key)) continue;
      if (key == std::string_view("oneOf")) document_.check_one_of(schema[key], where);
      std::vector<piece> parts;
      for (const json& each : schema[key]) parts.push_back(call(each, where + "." + key));
      return to_.any_of(parts);
    }
    std::vector<piece> parts;
    for (const json& each : document_.branches(schema, where)) parts.push_back(plain(each, where));
    return to_.any_of(parts);
  }

  /// A schema without references and choices.
  piece plain(const json& schema, const std::string& where) {
    if (schema.contains("enum") || schema.contains("const")) {
      auto texts = listed_texts(schema, where);
      return texts.empty() ? to_.any_of({}) : to_.one_of_texts(std::move(texts));
    }
    std::vector<piece> parts;
    for (const std::string& type : allowed_types(schema, where)) parts.push_back(of_type(type, schema, where));
    return to_.any_of(parts);
  }

  piece of_type(const std::string& type, const json& schema, const std::string& where) {
    if (type == "null") return text_.null();
    if (type == "boolean") return text_.boolean();
    if (type == "string") return schema_string(to_, text_, schema, where);
    if (type == "array") return array(schema, where);
    if (type == "object") return object(schema, where);
    return schema_number(to_, text_, type, schema, where);
  }

  piece array(const json& schema, const std::string& where) {
    const std::int32_t least = count_of(schema, "minItems", 0);
    const std::int32_t most = count_of(schema, "maxItems", grammar_builder::any_number);
    if (most >= 0 && most < least) return to_.any_of({});
    return array_of(schema.value("prefixItems", json::array()), schema.value("items", json(true)), least, most, where);
  }

  /// Behind each of the first items the array may end, if it has enough.
  piece array_of(const json& first, const json& others, std::int32_t least, std::int32_t most,
                 const std::string& where) {
    const piece result{to_.state(), to_.state()};
    const std::int32_t closing = to_.state();
    to_.join(closing, to_.sequence({text_.space(), to_.text("]")}), result.to);
    std::int32_t at = to_.state();
    to_.join(result.from, to_.text("["), at);
    if (least == 0) to_.join(at, to_.text("]"), result.to);
    std::int32_t written = 0;
    const auto item = [&](const json& schema, const std::string& place) {
      const std::int32_t next = to_.state();
      const piece before = written == 0 ? text_.space() : text_.comma();
      to_.join(at, to_.sequence({before, call(schema, place)}), next);
      at = next;
      if (++written >= least) to_.join(at, closing);
    };
    for (std::size_t i = 0; i < first.size() && (most < 0 || written < most); ++i) {
      if (first[i] == false) return result;
      item(first[i], fmt::format("{}.prefixItems[{}]", where, i));
    }
    if (others == false || (most >= 0 && written >= most)) return result;
    if (written == 0) item(others, where + ".items");
    const rule_id other = to_.rule(to_.sequence({text_.comma(), call(others, where + ".items")}));
    to_.join(at, to_.calls(other, std::max(least - written, 0), most < 0 ? most : most - written), closing);
    return result;
  }

  struct property {
    std::string name;
    json schema;
    bool required;
  };

  piece object(const json& schema, const std::string& where) {
    const json listed = schema.value("properties", json::object());
    const json required = schema.value("required", json::array());
    std::vector<property> properties;
    std::vector<std::string> names;  // that no further property may have
    const auto add = [&](const std::string& name, const json& property_schema, bool needed) {
      names.push_back(name);
      if (needed || property_schema != false) properties.push_back({name, property_schema, needed});
    };
    auto missing = required.get<std::set<std::string>>();
    for (const auto& [name, property_schema] : listed.items()) add(name, property_schema, missing.erase(name) > 0);
    const json unlisted = schema.value("additionalProperties", json(true));
    for (const json& name : required)
      if (missing.erase(name.get<std::string>()) > 0) add(name.get<std::string>(), unlisted, true);
    const json others = schema.value("additionalProperties", json(!schema.contains("properties")));
    return object_of(properties, others, names, where);
  }

  piece member_of(const property& member, const std::string& where) {
    return to_.sequence(
        {to_.text(json(member.name).dump()), text_.colon(), call(member.schema, where + "." + member.name)});
  }

  /// What stands before a member is read once for all members that may come next, so that many may.
  piece object_of(const std::vector<property>& properties, const json& others, const std::vector<std::string>& names,
                  const std::string& where) {
    const piece result{to_.state(), to_.state()};
    const std::int32_t opened = to_.state(), closing = to_.state();
    std::int32_t next = to_.state();  // a member comes
    to_.join(result.from, to_.text("{"), opened);
    to_.join(opened, text_.space(), next);
    const std::size_t needed = check_order(properties, where);
    if (needed == 0) to_.join(opened, to_.text("}"), result.to);
    for (std::size_t i = 0; i < properties.size(); ++i) {
      const std::int32_t written = to_.state(), after = to_.state();
      to_.join(next, member_of(properties[i], where), written);
      to_.join(written, text_.comma(), after);
      if (i + 1 >= needed) to_.join(written, closing);
      if (!properties[i].required) to_.join(next, after);
      next = after;
    }
    if (others != false) {
      const std::int32_t written = to_.state();
      to_.join(next,
               to_.sequence({text_.key_except(names), text_.colon(), call(others, where + ".additionalProperties")}),
               written);
      to_.join(written, text_.comma(), next);
      to_.join(written, closing);
    }
    to_.join(closing, to_.sequence({text_.space(), to_.text("}")}), result.to);
    return result;
  }

  /// How many properties there are up to the last that is required. Refuses an object in whose midst nothing could be
  /// written because too many may come next.
  static std::size_t check_order(const std::vector<property>& properties, const std::string& where) {
    std::size_t needed = 0;
    for (std::size_t i = 0; i < properties.size(); ++i) {
      if (properties[i].required) needed = i + 1;
      if (i >= needed + most_next)
        refuse("{}: more than {} properties that may be left out follow one another: use fewer, or require some", where,
               most_next);
    }
    return needed;
  }

  grammar_builder& to_;
  json_rules text_;
  const schema_document& document_;
  std::map<std::string, rule_id> rules_;  ///< by the schema's text
  std::map<std::string, rule_id> references_;
  std::deque<open_rule> open_;
};

}  // namespace

bool is_known_type(std::string_view type) {
  return type == "integer" || std::find(all_types.begin(), all_types.end(), type) != all_types.end();
}

rule_id write_schema(grammar_builder& to, const schema_document& document, const schema_json& part) {
  return schema_writer(to, document).write(part);
}

rule_id read_schema(grammar_builder& to, std::string_view schema, std::size_t& work) {
  json root = parse_json_as<schema_json>(schema, "the schema", schema_limits);
  drop_nulls(root);
  const schema_document document(std::move(root), work);
  return write_schema(to, document, document.root());
}

}  // namespace troupe::detail
