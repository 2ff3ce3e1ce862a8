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
#include "model/grammar/number_grammar.hpp"
#include "model/grammar/regex_grammar.hpp"
#include "model/grammar/schema_shape_impl.hpp"

namespace troupe::detail {
namespace {

using json = schema_json;
using piece = grammar_builder::piece;
using rule_id = grammar_builder::rule_id;

constexpr std::array all_types{"object", "array", "string", "number", "boolean", "null"};
constexpr std::size_t most_schemas = 20'000;

constexpr std::array<std::pair<const char*, std::array<const char*, 5>>, 4> keywords_of_types{{
    {"object", {"properties", "required", "additionalProperties"}},
    {"array", {"items", "prefixItems", "minItems", "maxItems"}},
    {"string", {"minLength", "maxLength", "pattern", "format"}},
    {"number", {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"}},
}};

constexpr std::array<std::pair<const char*, const char*>, 9> formats{{
    {"date",
     R"re([1-9]\d{3}-((0[13578]|1[02])-(0[1-9]|[12]\d|3[01])|(0[469]|11)-(0[1-9]|[12]\d|30)|02-(0[1-9]|1\d|2[0-8])))re"},
    {"time", R"re(([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d{1,6})?(Z|[+-]([01]\d|2[0-3]):[0-5]\d))re"},
    {"uuid", R"re([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})re"},
    {"ipv4", R"re(((25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)\.){3}(25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d))re"},
    {"ipv6", R"re(([0-9a-f]{1,4}:){7}[0-9a-f]{1,4})re"},
    {"email", R"re([a-z0-9]{1,16}([._+-][a-z0-9]{1,16}){0,2}@([a-z0-9]{1,16}(-[a-z0-9]{1,16})?\.){1,3}[a-z]{2,8})re"},
    {"hostname", R"re(([a-z0-9]{1,16}(-[a-z0-9]{1,16})?\.){0,3}[a-z]{2,16})re"},
    {"duration", R"re(P(\d{1,4}D(T\d{1,4}H)?|\d{1,4}W|T\d{1,4}[HMS]))re"},
    {"date-time", ""},  // made of the first two
}};

/// The expression behind a format; null where it is not known.
const char* find_format(std::string_view name) {
  for (const auto& [known, of] : formats)
    if (name == known) return of;
  return nullptr;
}

std::int32_t count_of(const json& schema, const char* key, std::int32_t otherwise) {
  const json* value = member(schema, key);
  return value ? static_cast<std::int32_t>(value->get<double>()) : otherwise;
}

std::string dumped(const json& value) {
  return value.dump();
}

class schema_writer {
 public:
  schema_writer(grammar_builder& to, json schema) : to_(to), text_(to), document_(std::move(schema)) {}

  rule_id write() {
    const rule_id root = rule_of(document_.root(), "the schema");
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
    const auto [known, is_new] = rules_.try_emplace(dumped(schema), -1);
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
    if (schema.contains("enum") || schema.contains("const")) return listed_values(schema, where);
    std::vector<piece> parts;
    for (const std::string& type : types_of(schema, where)) parts.push_back(of_type(type, schema, where));
    return to_.any_of(parts);
  }

  std::vector<std::string> types_of(const json& schema, const std::string& where) const {
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
  static std::string known_type(const std::string& type, const std::string& where) {
    if (type != "integer" && std::find(all_types.begin(), all_types.end(), type) == all_types.end())
      refuse("{}: there is no type {}", where, type);
    return type;
  }

  static bool has_type(const json& value, const std::string& type) {
    if (type == "integer")
      return value.is_number_integer() || (value.is_number() && value.get<double>() == std::floor(value.get<double>()));
    return type == value.type_name();
  }

  piece listed_values(const json& schema, const std::string& where) {
    for (const auto& [key, value] : schema.items())
      if (key != "enum" && key != "const" && key != "type")
        refuse("{}: {} beside a list of values is not supported: leave out the values that it rules out", where, key);
    const json* only = member(schema, "const");
    const json values = only ? json::array({*only}) : schema["enum"];
    const auto types = schema.contains("type") ? types_of(schema, where) : std::vector<std::string>();
    std::vector<std::string> texts;
    for (const json& each : values) {
      const bool typed = types.empty() || std::any_of(types.begin(), types.end(),
                                                      [&](const auto& type) { return has_type(each, type); });
      const bool listed = !only || !schema.contains("enum") ||
                          std::find(schema["enum"].begin(), schema["enum"].end(), each) != schema["enum"].end();
      if (typed && listed) texts.push_back(dumped(each));
    }
    return texts.empty() ? to_.any_of({}) : to_.one_of_texts(std::move(texts));
  }

  piece of_type(const std::string& type, const json& schema, const std::string& where) {
    if (type == "null") return text_.null();
    if (type == "boolean") return text_.boolean();
    if (type == "string") return string(schema, where);
    if (type == "array") return array(schema, where);
    if (type == "object") return object(schema, where);
    const number_range range = range_of(schema, type == "integer" ? number_kind::whole : number_kind::any, where);
    if (!range.low && !range.high) return type == "integer" ? text_.integer() : text_.number();
    return type == "integer" ? integer_piece(to_, range) : number_piece(to_, range);
  }

  static number_range range_of(const json& schema, number_kind kind, const std::string& where) {
    number_range range;
    const auto bound = [&](const char* key, bool excluded, auto read) -> std::optional<number_bound> {
      const json* value = member(schema, key);
      if (!value) return std::nullopt;
      return read(value->get<double>(), excluded, kind, where + "." + key);
    };
    range.low = bound("minimum", false, low_bound);
    range.high = bound("maximum", false, high_bound);
    if (const auto low = bound("exclusiveMinimum", true, low_bound);
        low && (!range.low || schema["exclusiveMinimum"] >= schema["minimum"]))
      range.low = low;
    if (const auto high = bound("exclusiveMaximum", true, high_bound);
        high && (!range.high || schema["exclusiveMaximum"] <= schema["maximum"]))
      range.high = high;
    return range;
  }

  /// A format that is not known says nothing, as schemas have it. Libraries write the expression behind a known one
  /// beside it: that expression is the more exact of the two, unless it says what rules cannot.
  piece string(const json& schema, const std::string& where) {
    const json *pattern = member(schema, "pattern"), *format = member(schema, "format");
    if (format && !find_format(format->get<std::string>())) format = nullptr;
    if (pattern && format && !can_be_written(pattern->get<std::string>())) pattern = nullptr;
    const bool counted = schema.contains("minLength") || schema.contains("maxLength");
    if (counted && (pattern || format))
      refuse("{}: a length beside a pattern or a format is not supported: say it in the pattern", where);
    if (pattern)
      return quoted(regex_piece(to_, pattern->get<std::string>(), false, json_character, where + ".pattern"));
    if (format) return quoted(format_piece(format->get<std::string>()));
    if (!counted) return text_.string();
    const std::int32_t least = count_of(schema, "minLength", 0);
    const std::int32_t most = count_of(schema, "maxLength", grammar_builder::any_number);
    return most >= 0 && most < least ? to_.any_of({}) : text_.string(least, most);
  }

  piece quoted(piece inside) { return to_.sequence({to_.text("\""), inside, to_.text("\"")}); }

  static bool can_be_written(const std::string& pattern) {
    try {
      grammar_builder unused;
      (void)regex_piece(unused, pattern, false, json_character, "pattern");
      return true;
    } catch (const input_error&) {
      return false;
    }
  }

  piece format_piece(const std::string& name) {
    const auto expression = [&](const char* of) {
      return regex_piece(to_, of, true, json_character, "format " + name);
    };
    if (name == "date-time")
      return to_.sequence({expression(formats[0].second), to_.text("T"), expression(formats[1].second)});
    return expression(find_format(name));
  }

  // --- arrays ------------------------------------------------------------------------------------------------------

  piece array(const json& schema, const std::string& where) {
    const std::int32_t least = count_of(schema, "minItems", 0);
    const std::int32_t most = count_of(schema, "maxItems", grammar_builder::any_number);
    const json *first = member(schema, "prefixItems"), *others = member(schema, "items");
    if (most >= 0 && most < least) return to_.any_of({});
    return array_of(first ? *first : json::array(), others ? *others : json(true), least, most, where);
  }

  /// Behind each of the first items the array may end, if it has enough.
  piece array_of(const json& first, const json& others, std::int32_t least, std::int32_t most,
                 const std::string& where) {
    const piece made{to_.state(), to_.state()};
    const std::int32_t closing = to_.state();
    to_.join(closing, to_.sequence({text_.space(), to_.text("]")}), made.to);
    std::int32_t at = to_.state();
    to_.join(made.from, to_.text("["), at);
    if (least == 0) to_.join(at, to_.text("]"), made.to);
    std::int32_t written = 0;
    const auto item = [&](const json& schema, const std::string& place) {
      const std::int32_t next = to_.state();
      const piece before = written == 0 ? text_.space() : text_.comma();
      to_.join(at, to_.sequence({before, call(schema, place)}), next);
      at = next;
      if (++written >= least) to_.join(at, closing);
    };
    for (std::size_t i = 0; i < first.size() && (most < 0 || written < most); ++i) {
      if (first[i] == false) return made;
      item(first[i], fmt::format("{}.prefixItems[{}]", where, i));
    }
    if (others == false || (most >= 0 && written >= most)) return made;
    if (written == 0) item(others, where + ".items");
    const rule_id other = to_.rule(to_.sequence({text_.comma(), call(others, where + ".items")}));
    to_.join(at, to_.calls(other, std::max(least - written, 0), most < 0 ? most : most - written), closing);
    return made;
  }

  // --- objects -----------------------------------------------------------------------------------------------------

  struct property {
    std::string name;
    json schema;
    bool required;
  };

  piece object(const json& schema, const std::string& where) {
    const json none = json::object();
    const json* listed = member(schema, "properties");
    const json* more = member(schema, "additionalProperties");
    json others = more ? *more : json(listed == nullptr);
    std::set<std::string> required;
    if (const json* names = member(schema, "required"))
      for (const json& each : *names) required.insert(each.get<std::string>());
    std::vector<property> properties;
    for (const auto& [name, of] : (listed ? *listed : none).items()) {
      const bool needed = required.erase(name) > 0;
      if (needed || of != false) properties.push_back({name, of, needed});
    }
    const json unlisted = more ? *more : json(true);
    if (const json* names = member(schema, "required"))
      for (const json& each : *names)
        if (required.erase(each.get<std::string>()) > 0)
          properties.push_back({each.get<std::string>(), unlisted, true});
    std::vector<std::string> names;
    for (const property& each : properties) names.push_back(each.name);
    if (listed)
      for (const auto& [name, of] : listed->items())
        if (of == false) names.push_back(name);
    return object_of(properties, others, names, where);
  }

  piece member_of(const property& of, const std::string& where) {
    return to_.sequence({to_.text(dumped(of.name)), text_.colon(), call(of.schema, where + "." + of.name)});
  }

  /// Two ways side by side: nothing is written yet; something is, and a comma goes before the next.
  piece object_of(const std::vector<property>& properties, const json& others, const std::vector<std::string>& names,
                  const std::string& where) {
    const piece made{to_.state(), to_.state()};
    std::int32_t empty = to_.state(), begun = to_.state();
    to_.join(made.from, to_.text("{"), empty);
    for (const property& each : properties) {
      const rule_id written = to_.rule(member_of(each, where));
      const std::int32_t still_empty = to_.state(), then = to_.state();
      to_.join(empty, to_.sequence({text_.space(), to_.call(written)}), then);
      to_.join(begun, to_.sequence({text_.comma(), to_.call(written)}), then);
      if (!each.required) {
        to_.join(empty, still_empty);
        to_.join(begun, then);
      }
      empty = still_empty;
      begun = then;
    }
    if (others != false) {
      const piece key = text_.key_except(names);
      const rule_id other = to_.rule(to_.sequence({key, text_.colon(), call(others, where + ".additionalProperties")}));
      const std::int32_t then = to_.state();
      to_.join(empty, to_.sequence({text_.space(), to_.call(other)}), then);
      to_.join(begun, then);
      to_.join(then, to_.sequence({text_.comma(), to_.call(other)}), then);
      begun = then;
    }
    to_.join(empty, to_.text("}"), made.to);
    to_.join(begun, to_.sequence({text_.space(), to_.text("}")}), made.to);
    return made;
  }

  grammar_builder& to_;
  json_rules text_;
  schema_document document_;
  std::map<std::string, rule_id> rules_;  ///< by the schema's text
  std::map<std::string, rule_id> references_;
  std::deque<open_rule> open_;
};

}  // namespace

rule_id read_schema(grammar_builder& to, std::string_view schema) {
  constexpr json_limits limits{.depth = 96, .values = 100'000};
  return schema_writer(to, parse_json_as<schema_json>(schema, "the schema", limits)).write();
}

}  // namespace troupe::detail
