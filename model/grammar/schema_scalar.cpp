#include "model/grammar/schema_scalar_impl.hpp"

#include <array>
#include <optional>
#include <string_view>

#include "base/error.hpp"
#include "model/grammar/number_grammar.hpp"
#include "model/grammar/regex_grammar.hpp"

namespace troupe::detail {
namespace {

using json = schema_json;
using piece = grammar_builder::piece;

constexpr std::array<std::pair<const char*, const char*>, 8> formats{{
    {"date",
     R"re([1-9]\d{3}-((0[13578]|1[02])-(0[1-9]|[12]\d|3[01])|(0[469]|11)-(0[1-9]|[12]\d|30)|02-(0[1-9]|1\d|2[0-8])))re"},
    {"time", R"re(([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d{1,6})?(Z|[+-]([01]\d|2[0-3]):[0-5]\d))re"},
    {"uuid", R"re([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})re"},
    {"ipv4", R"re(((25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)\.){3}(25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d))re"},
    {"ipv6", R"re(([0-9a-f]{1,4}:){7}[0-9a-f]{1,4})re"},
    {"email", R"re([a-z0-9]{1,16}([._+-][a-z0-9]{1,16}){0,2}@([a-z0-9]{1,16}(-[a-z0-9]{1,16})?\.){1,3}[a-z]{2,8})re"},
    {"hostname", R"re(([a-z0-9]{1,16}(-[a-z0-9]{1,16})?\.){0,3}[a-z]{2,16})re"},
    {"duration", R"re(P(\d{1,4}D(T\d{1,4}H)?|\d{1,4}W|T\d{1,4}[HMS]))re"},
}};

/// The expression behind a format; null where it is not known, or made of others.
const char* find_format(std::string_view name) {
  for (const auto& [known, expression] : formats)
    if (name == known) return expression;
  return nullptr;
}

piece format_piece(grammar_builder& to, const std::string& name) {
  if (name == "date-time") return to.sequence({format_piece(to, "date"), to.text("T"), format_piece(to, "time")});
  return regex_piece(to, find_format(name), true, json_character, "format " + name);
}

piece quoted(grammar_builder& to, piece inside) {
  return to.sequence({to.text("\""), inside, to.text("\"")});
}

/// Whole numbers may have more digits than a double keeps.
decimal exact_value(const json& number, const std::string& where) {
  return number.is_number_integer() ? whole_decimal(number.dump()) : decimal_of(number.get<double>(), where);
}

number_range range_of(const json& schema, number_kind kind, const std::string& where) {
  number_range range;
  const auto bound = [&](const char* key, bool excluded, auto read) -> std::optional<number_bound> {
    const json* value = member(schema, key);
    if (!value) return std::nullopt;
    const std::string place = where + "." + key;
    return read(exact_value(*value, place), excluded, kind, place);
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
}  // namespace

bool is_known_format(std::string_view name) {
  return name == "date-time" || find_format(name);
}

bool can_be_written(const std::string& pattern) {
  try {
    grammar_builder unused;
    (void)regex_piece(unused, pattern, false, json_character, "pattern");
    return true;
  } catch (const input_error&) {
    return false;
  }
}

std::int32_t count_of(const schema_json& schema, const char* keyword, std::int32_t otherwise) {
  const json* value = member(schema, keyword);
  return value ? static_cast<std::int32_t>(value->get<double>()) : otherwise;
}

/// A format that is not known says nothing, as schemas have it. Libraries write the expression behind a known one
/// beside it: that expression is the more exact of the two, unless it says what rules cannot.
piece schema_string(grammar_builder& to, json_rules& text, const schema_json& schema, const std::string& where) {
  const json *pattern = member(schema, "pattern"), *format = member(schema, "format");
  if (format && !is_known_format(format->get<std::string>())) format = nullptr;
  if (pattern && format && !can_be_written(pattern->get<std::string>())) pattern = nullptr;
  const std::int32_t implied = format && !pattern ? 1 : 0;  // no format has an empty text
  const bool counted = count_of(schema, "minLength", 0) > implied || schema.contains("maxLength");
  if (counted && (pattern || format))
    refuse("{}: a length beside a pattern or a format is not supported: say it in the pattern", where);
  if (pattern)
    return quoted(to, regex_piece(to, pattern->get<std::string>(), false, json_character, where + ".pattern"));
  if (format) return quoted(to, format_piece(to, format->get<std::string>()));
  if (!counted) return text.string();
  const std::int32_t least = count_of(schema, "minLength", 0);
  const std::int32_t most = count_of(schema, "maxLength", grammar_builder::any_number);
  return most >= 0 && most < least ? to.any_of({}) : text.string(least, most);
}

piece schema_number(grammar_builder& to, json_rules& text, const std::string& type, const schema_json& schema,
                    const std::string& where) {
  const bool whole = type == "integer";
  const number_range range = range_of(schema, whole ? number_kind::whole : number_kind::any, where);
  if (!range.low && !range.high) return whole ? text.integer() : text.number();
  return whole ? integer_piece(to, range) : number_piece(to, range);
}

}  // namespace troupe::detail
