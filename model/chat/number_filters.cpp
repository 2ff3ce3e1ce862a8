#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdlib>

#include "model/chat/filters.hpp"
#include "model/chat/literals.hpp"
#include "model/chat/operators.hpp"
#include "model/chat/text.hpp"

namespace troupe::detail::jinja {
namespace {

// A number's text without spaces around it and underscores inside; empty if it cannot be one.
std::string bare_number(std::string_view text) {
  std::string bare;
  char before = '_';
  for (const char c : strip(text, side::both)) {
    if (c == '_' && !std::isalnum(static_cast<unsigned char>(before))) return "";
    if (c != '_') bare += c;
    before = c;
  }
  return before == '_' ? "" : bare;
}

std::optional<double> parse_float(std::string_view text) {
  const std::string bare = bare_number(text);
  const char* begin = bare.c_str() + (bare.starts_with('+') ? 1 : 0);
  double number = 0;
  const auto [end, error] = std::from_chars(begin, bare.data() + bare.size(), number);
  if (error == std::errc::invalid_argument || *end != '\0' || bare.find('(') != bare.npos) return std::nullopt;
  if (error == std::errc::result_out_of_range) return std::strtod(begin, nullptr);
  return number;
}

std::optional<integer> parse_digits(std::string_view digits, int base) {
  integer number = 0;
  if (digits.empty()) return std::nullopt;
  for (const char c : digits) {
    const int digit = digit_value(c);
    if (digit >= base) return std::nullopt;
    if (!append_digit(number, digit, base)) fail("int: the number has more than 127 bits");
  }
  return number;
}

std::optional<integer> parse_integer(std::string_view text, integer base) {
  const std::string bare = bare_number(text);
  std::string_view digits = bare;
  const bool negative = digits.starts_with('-');
  if (negative || digits.starts_with('+')) digits.remove_prefix(1);
  const int prefixed = prefixed_base(digits);
  if (base == 0) base = prefixed;
  if (base < 2 || base > 36) fail("int: there is no base {}", base);
  if (prefixed != 10 && prefixed == base) digits.remove_prefix(2);
  std::optional<integer> number = parse_digits(digits, static_cast<int>(base));
  if (number && negative) number = -*number;
  return number;
}

std::optional<integer> truncated(double number) {
  if (std::isnan(number)) return std::nullopt;
  if (std::abs(number) > 1e37) fail("int: the number has more than 127 bits");
  return static_cast<integer>(number);
}

value to_integer(budget&, const value& subject, arguments&& given) {
  const parameters p("int", std::move(given), {"default", "base"});
  require_defined(subject);
  std::optional<integer> number;
  if (const std::string* text = text_of(subject)) {
    number = parse_integer(*text, p.number(1, 10));
    const std::optional<double> approximate = number ? std::nullopt : parse_float(*text);
    if (approximate && std::isfinite(*approximate)) number = truncated(*approximate);
  } else if (const double* real = subject.as<double>()) {
    number = truncated(*real);
  } else {
    number = integer_of(subject);
  }
  if (number) return make_integer(*number);
  return p.find(0) ? p.at(0) : make_integer(0);
}

value to_float(budget&, const value& subject, arguments&& given) {
  const parameters p("float", std::move(given), {"default"});
  require_defined(subject);
  if (const std::optional<double> number = number_of(subject)) return {*number};
  if (const std::string* text = text_of(subject)) {
    if (const std::optional<double> parsed = parse_float(*text)) return {*parsed};
  }
  return p.find(0) ? p.at(0) : value{0.0};
}

value absolute(budget&, const value& subject, arguments&& given) {
  const parameters nothing("abs", std::move(given), {});
  require_defined(subject);
  if (const std::optional<integer> whole = integer_of(subject))
    return *whole < 0 ? negate(subject) : make_integer(*whole);
  const double* number = subject.as<double>();
  if (!number) fail("abs needs a number, not {}", type_name(subject));
  return {std::abs(*number)};
}

// Correct for halves that binary cannot hold, because the decimal digits come from the exact value.
double round_to_digits(double number, int digits) {
  if (!std::isfinite(number)) return number;
  if (digits >= 0) return std::strtod(fmt::format("{:.{}f}", number, digits).c_str(), nullptr);
  const double unit = std::pow(10.0, -digits);
  return std::nearbyint(number / unit) * unit;
}

value rounded(budget&, const value& subject, arguments&& given) {
  const parameters p("round", std::move(given), {"precision", "method"});
  require_defined(subject);
  const std::string how = p.text(1, "common");
  const integer digits = p.number(0, 0);
  if (digits < -300 || digits > 300) fail("round: {} digits are out of range", digits);
  const std::optional<double> number = number_of(subject);
  if (!number) fail("round needs a number, not {}", type_name(subject));
  if (how == "common") {
    const double near = round_to_digits(*number, static_cast<int>(digits));
    const std::optional<integer> whole = integer_of(subject);
    if (!whole) return {near};
    return make_integer(digits >= 0 ? *whole : truncated(near).value_or(0));
  }
  if (how != "ceil" && how != "floor") fail("round: the method is common, ceil or floor, not '{}'", how);
  const double unit = std::pow(10.0, static_cast<int>(digits));
  return {(how == "ceil" ? std::ceil(*number * unit) : std::floor(*number * unit)) / unit};
}

}  // namespace

filter find_number_filter(std::string_view name) {
  static constexpr std::pair<std::string_view, filter> table[] = {
      {"int", to_integer}, {"float", to_float}, {"abs", absolute}, {"round", rounded}};
  return find_function(table, name);
}

}  // namespace troupe::detail::jinja
