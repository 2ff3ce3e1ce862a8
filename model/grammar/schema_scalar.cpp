#include "model/grammar/schema_scalar_impl.hpp"

#include <optional>
#include <string_view>

#include "base/error.hpp"
#include "model/grammar/number_grammar.hpp"
#include "model/grammar/regex_grammar.hpp"

namespace troupe::detail {
namespace {

using json = schema_json;
using piece = grammar_builder::piece;

constexpr const char* date =
    R"re([1-9]\d{3}-((0[13578]|1[02])-(0[1-9]|[12]\d|3[01])|(0[469]|11)-(0[1-9]|[12]\d|30)|02-(0[1-9]|1\d|2[0-8])))re"
    R"re(|([1-9]\d(0[48]|[2468][048]|[13579][26])|([2468][048]|[13579][26])00)-02-29)re";
constexpr const char* time = R"re(([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d{1,9})?(Z|[+-]([01]\d|2[0-3]):[0-5]\d))re";
constexpr const char* uuid = R"re([0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12})re";
constexpr const char* ipv4 = R"re(((25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)\.){3}(25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d))re";
/// Part of a host's name.
constexpr const char* label = "[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?";

std::string hostname() {
  return fmt::format(R"({}(\.{})*)", label, label);
}

std::string email() {
  return fmt::format(R"([A-Za-z0-9_+'-](\.?[A-Za-z0-9_+'-]){{0,63}}@({}\.)+[A-Za-z]([A-Za-z0-9-]{{0,61}}[A-Za-z]))",
                     label);
}

/// Any unit may be left out, as validators have it.
std::string duration() {
  const std::string in_time = R"(T(\d{1,9}H(\d{1,9}M)?(\d{1,9}S)?|\d{1,9}M(\d{1,9}S)?|\d{1,9}S))";
  const std::string in_date = R"((\d{1,9}Y(\d{1,9}M)?(\d{1,9}D)?|\d{1,9}M(\d{1,9}D)?|\d{1,9}D))";
  return fmt::format(R"(P(\d{{1,9}}W|{}({})?|{}))", in_date, in_time, in_time);
}

/// What may follow so many groups of an address: one more, or two colons for zeros, and the rest.
std::string ipv6_behind(int groups) {
  constexpr const char* group = "[0-9a-fA-F]{1,4}";
  if (groups == 7) return fmt::format("(:{}|::)", group);
  const std::string rest = fmt::format("({}(:{}){{0,{}}})?", group, group, 6 - groups);
  return groups == 0 ? fmt::format("({}{}|::{})", group, ipv6_behind(1), rest)
                     : fmt::format("(:{}{}|::{})", group, ipv6_behind(groups + 1), rest);
}

/// Also an address of IPv4, as IPv6 writes it.
std::string ipv6() {
  return fmt::format("{}|::[fF]{{4}}:{}", ipv6_behind(0), ipv4);
}

/// The expression behind a format; empty where it is not known, or made of others.
std::string expression_of(std::string_view format) {
  if (format == "date") return date;
  if (format == "time") return time;
  if (format == "uuid") return uuid;
  if (format == "ipv4") return ipv4;
  if (format == "ipv6") return ipv6();
  if (format == "email") return email();
  if (format == "hostname") return hostname();
  if (format == "duration") return duration();
  return "";
}

piece format_piece(grammar_builder& to, const std::string& name) {
  if (name == "date-time") return to.sequence({format_piece(to, "date"), to.text("T"), format_piece(to, "time")});
  return regex_piece(to, expression_of(name), true, json_character, "format " + name);
}

piece quoted(grammar_builder& to, piece inside) {
  return to.sequence({to.text("\""), inside, to.text("\"")});
}

/// Whole numbers may have more digits than a double keeps.
decimal exact_value(const json& number, std::string_view where) {
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
  return name == "date-time" || !expression_of(name).empty();
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

bool can_be_held(std::string_view keyword, const schema_json& bound) {
  try {
    const auto read = keyword.ends_with("inimum") ? low_bound : high_bound;
    (void)read(exact_value(bound, keyword), false, number_kind::any, keyword);
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
