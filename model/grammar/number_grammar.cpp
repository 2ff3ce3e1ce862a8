#include "model/grammar/number_grammar.hpp"

#include <algorithm>
#include <cmath>

#include "base/error.hpp"

namespace troupe::detail {
namespace {

using piece = grammar_builder::piece;

constexpr std::int64_t most_whole = 999'999'999'999'999;  // 15 digits
constexpr std::int64_t most_with_fraction = 999'999'999;  // 9 digits, so that 6 are left behind the point
constexpr std::size_t most_fraction = 6;
constexpr int any_digits = 15;

piece digit(grammar_builder& to, char low, char high) {
  return to.bytes(static_cast<std::uint8_t>(low), static_cast<std::uint8_t>(high));
}

piece digits(grammar_builder& to, std::int32_t least, std::int32_t most) {
  return to.repeat(digit(to, '0', '9'), least, most);
}

/// Digits of equal length, from `low` to `high`. Read from `from` on, so that numbers of all lengths begin at one
/// place.
void add_equal_length(grammar_builder& to, std::string_view low, std::string_view high, std::int32_t from,
                      std::int32_t end) {
  const auto read = [&](char first, char last, std::int32_t next) {
    to.join_by_bytes(from, static_cast<std::uint8_t>(first), static_cast<std::uint8_t>(last), next);
  };
  if (low.size() == 1) return read(low[0], high[0], end);
  const auto rest = static_cast<std::int32_t>(low.size()) - 1;
  const std::string nines(low.size() - 1, '9'), zeros(low.size() - 1, '0');
  const auto read_then = [&](char first, std::string_view least, std::string_view most) {
    const std::int32_t next = to.state();
    read(first, first, next);
    add_equal_length(to, least, most, next, end);
  };
  if (low[0] == high[0]) return read_then(low[0], low.substr(1), high.substr(1));
  const bool whole_low = low.substr(1) == zeros, whole_high = high.substr(1) == nines;
  if (!whole_low) read_then(low[0], low.substr(1), nines);
  if (!whole_high) read_then(high[0], zeros, high.substr(1));
  const char first = static_cast<char>(low[0] + !whole_low), last = static_cast<char>(high[0] - !whole_high);
  if (first > last) return;
  const std::int32_t next = to.state();
  read(first, last, next);
  to.join(next, digits(to, rest, rest), end);
}

std::int64_t largest_of_length(std::int32_t length) {
  std::int64_t result = 0;
  for (std::int32_t i = 0; i < length; ++i) result = 10 * result + 9;
  return result;
}

/// Whole numbers without a sign.
piece whole_piece(grammar_builder& to, std::int64_t low, std::int64_t high) {
  const piece result{to.state(), to.state()};
  if (low == 0) {
    to.join_by_bytes(result.from, '0', '0', result.to);
    low = 1;
  }
  while (low <= high) {
    const std::string first = std::to_string(low);
    const auto length = static_cast<std::int32_t>(first.size());
    std::int64_t last = std::min(high, largest_of_length(length));
    if (low == largest_of_length(length - 1) + 1 && last == largest_of_length(length)) {  // all of some lengths
      std::int32_t longest = length;
      while (largest_of_length(longest + 1) <= high) ++longest;
      const std::int32_t next = to.state();
      to.join_by_bytes(result.from, '1', '9', next);
      to.join(next, digits(to, length - 1, longest - 1), result.to);
      last = largest_of_length(longest);
    } else {
      add_equal_length(to, first, std::to_string(last), result.from, result.to);
    }
    low = last + 1;
  }
  return result;
}

/// The digits behind the point of a number whose whole part is that of a bound, or of both.
class fraction_writer {
 public:
  fraction_writer(grammar_builder& to, const number_bound* low, const number_bound* high)
      : to_(to), low_(low), high_(high), end_(to.state()) {}

  piece write() {
    const piece result{to_.state(), end_};
    if (may_end(0, low_, high_)) to_.join(result.from, end_);
    if (const auto behind = place(0, low_, high_); behind) to_.join(result.from, to_.text("."), *behind);
    return result;
  }

 private:
  static char digit_of(const number_bound& bound, std::size_t at) {
    return at < bound.value.fraction.size() ? bound.value.fraction[at] : '0';
  }
  static bool is_over(const number_bound& bound, std::size_t at) { return at >= bound.value.fraction.size(); }

  /// The number ends with as many digits as `at`, all of them those of the bounds that still bind.
  static bool may_end(std::size_t at, const number_bound* low, const number_bound* high) {
    if (low && (!is_over(*low, at) || low->excluded)) return false;
    return !high || !is_over(*high, at) || !high->excluded;
  }

  /// The state before digit `at`; none where no digit may follow.
  std::optional<std::int32_t> place(std::size_t at, const number_bound* low, const number_bound* high) {
    if (at >= most_fraction) return std::nullopt;
    const std::int32_t result = to_.state();
    const char first = low ? digit_of(*low, at) : '0', last = high ? digit_of(*high, at) : '9';
    for (char each = first; each <= last; ++each) {
      const number_bound* still_low = low && each == first ? low : nullptr;
      const number_bound* still_high = high && each == last ? high : nullptr;
      if (!still_low && !still_high) {  // all digits up to the last bound are alike
        const char until = high ? static_cast<char>(last - 1) : '9';
        const auto more = static_cast<std::int32_t>(most_fraction - at - 1);
        to_.join(result, to_.sequence({digit(to_, each, until), digits(to_, 0, more)}), end_);
        each = until;
        continue;
      }
      const std::int32_t behind = to_.state();
      to_.join(result, digit(to_, each, each), behind);
      if (may_end(at + 1, still_low, still_high)) to_.join(behind, end_);
      if (const auto next = place(at + 1, still_low, still_high)) to_.join(behind, *next);
    }
    return result;
  }

  grammar_builder& to_;
  const number_bound *low_, *high_;
  std::int32_t end_;
};

piece any_fraction(grammar_builder& to) {
  return to.optional(to.sequence({to.text("."), digits(to, 1, static_cast<std::int32_t>(most_fraction))}));
}

/// Numbers without a sign. `low` counts as 0 where it is missing.
piece positive_piece(grammar_builder& to, const number_bound& low, const std::optional<number_bound>& high) {
  std::vector<piece> parts;
  const std::int64_t first = low.value.whole, last = high ? high->value.whole : most_with_fraction;
  const bool whole_low = low.value.fraction.empty() && !low.excluded;
  const auto with_fraction = [&](std::int64_t whole, const number_bound* least, const number_bound* most) {
    return to.sequence({to.text(std::to_string(whole)), fraction_writer(to, least, most).write()});
  };
  if (high && first == last) return with_fraction(first, &low, &*high);
  if (!whole_low) parts.push_back(with_fraction(first, &low, nullptr));
  if (high) parts.push_back(with_fraction(last, nullptr, &*high));
  const std::int64_t from = whole_low ? first : first + 1, until = high ? last - 1 : last;
  if (from <= until) parts.push_back(to.sequence({whole_piece(to, from, until), any_fraction(to)}));
  return to.any_of(parts);
}

bool is_below(const decimal& a, const decimal& b) {
  return a.whole != b.whole ? a.whole < b.whole : a.fraction < b.fraction;
}

/// Of numbers without a sign: whether any lies between.
bool is_empty(const number_bound& low, const std::optional<number_bound>& high) {
  if (!high) return false;
  if (is_below(high->value, low.value)) return true;
  return !is_below(low.value, high->value) && (low.excluded || high->excluded);
}

std::optional<number_bound> mirrored(const std::optional<number_bound>& bound) {
  if (!bound) return std::nullopt;
  number_bound result = *bound;
  result.value.negative = !result.value.negative;
  return result;
}

/// The numbers of a range that are not below zero, their sign left out.
template <class Write>
void add_side(std::vector<piece>& parts, const std::optional<number_bound>& low,
              const std::optional<number_bound>& high, Write write) {
  if (high && high->value.negative && !high->value.is_zero()) return;
  number_bound from;
  if (low && (!low->value.negative || low->value.is_zero())) from = *low;
  if (!is_empty(from, high)) parts.push_back(write(from, high));
}

template <class Write>
piece both_sides(grammar_builder& to, const number_range& range, bool negative_zero, Write write) {
  std::vector<piece> parts;
  add_side(parts, range.low, range.high, write);
  add_side(parts, mirrored(range.high), mirrored(range.low), [&](number_bound low, const auto& high) {
    if (!negative_zero && low.value.is_zero()) low.excluded = true;
    return to.sequence({to.text("-"), write(low, high)});
  });
  return to.any_of(parts);
}

std::int64_t reach_of(number_kind kind) {
  return kind == number_kind::whole ? most_whole : most_with_fraction;
}

decimal decimal_of(double value, std::string_view where) {
  decimal result;
  result.negative = std::signbit(value);
  const double size = std::fabs(value);
  if (!(size <= static_cast<double>(most_whole)))
    refuse("{}: {} has more than 15 digits: use a smaller one", where, value);
  if (size == std::floor(size)) {
    result.whole = static_cast<std::int64_t>(size);
    return result;
  }
  const std::string text = fmt::format("{:.{}f}", size, most_fraction);
  if (std::stod(text) != size || size > static_cast<double>(most_with_fraction))
    refuse("{}: {} has more than 9 digits before the point or 6 behind it: use fewer", where, value);
  result.whole = static_cast<std::int64_t>(size);
  result.fraction = text.substr(text.find('.') + 1, text.find_last_not_of('0') - text.find('.'));
  return result;
}

}  // namespace

number_bound low_bound(double value, bool excluded, number_kind kind, std::string_view where) {
  const std::int64_t reach = reach_of(kind);
  if (value < static_cast<double>(-reach)) return {{.negative = true, .whole = reach, .fraction = {}}};
  return {decimal_of(value, where), excluded};
}

number_bound high_bound(double value, bool excluded, number_kind kind, std::string_view where) {
  const std::int64_t reach = reach_of(kind);
  if (value > static_cast<double>(reach)) return {{.negative = false, .whole = reach, .fraction = {}}};
  return {decimal_of(value, where), excluded};
}

piece integer_piece(grammar_builder& to, const number_range& range) {
  return both_sides(to, range, false, [&](const number_bound& low, const std::optional<number_bound>& high) {
    const bool above = low.excluded || !low.value.fraction.empty();
    const std::int64_t first = low.value.whole + above;
    std::int64_t last = high ? high->value.whole : most_whole;
    if (high && high->excluded && high->value.fraction.empty()) --last;
    return first <= last ? whole_piece(to, first, last) : to.any_of({});
  });
}

piece number_piece(grammar_builder& to, const number_range& range) {
  if (range.low || range.high) {
    for (const auto* bound : {&range.low, &range.high})
      if (*bound && (*bound)->value.whole > most_with_fraction)
        refuse("a bound of a number has more than 9 digits: use a smaller one, or the type integer");
    return both_sides(to, range, true, [&](const number_bound& low, const std::optional<number_bound>& high) {
      return positive_piece(to, low, high);
    });
  }
  byte_set signs;
  signs['+'] = signs['-'] = true;
  byte_set e;
  e['e'] = e['E'] = true;
  const piece whole = to.any_of({to.text("0"), to.sequence({digit(to, '1', '9'), digits(to, 0, any_digits - 1)})});
  const piece exponent =
      to.optional(to.sequence({to.one_of_bytes(e), to.optional(to.one_of_bytes(signs)), digits(to, 1, 2)}));
  const piece fraction = to.optional(to.sequence({to.text("."), digits(to, 1, any_digits)}));
  return to.sequence({to.optional(to.text("-")), whole, fraction, exponent});
}

}  // namespace troupe::detail
