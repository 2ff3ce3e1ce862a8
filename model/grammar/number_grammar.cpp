#include "model/grammar/number_grammar.hpp"

#include <algorithm>
#include <cmath>
#include <compare>
#include <map>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/to_size.hpp"

namespace troupe::detail {
namespace {

using piece = grammar_builder::piece;

constexpr std::int32_t most_whole = 19;          // digits before the point
constexpr std::int32_t most_compared = 15;       // digits of a number with a fraction: each is a double of its own
constexpr std::size_t most_with_exponent = 118;  // digits of the largest number that is written with an exponent

piece digits(grammar_builder& to, std::int32_t least, std::int32_t most) {
  return to.repeat(to.bytes('0', '9'), least, most);
}

std::int32_t length_of(const number_bound& bound) {
  return static_cast<std::int32_t>(bound.value.whole.size());
}

/// Numbers without a sign, between two that have none either. A byte leads from each state to one other at most, so
/// that many alternatives may begin with a number.
class range_writer {
 public:
  range_writer(grammar_builder& to, number_bound low, std::optional<number_bound> high, number_kind kind)
      : to_(to), low_(std::move(low)), high_(std::move(high)), kind_(kind), end_(to.state()) {}

  piece write() {
    const piece result{state_of({}), end_};
    while (!open_.empty()) {
      const auto [at, state] = open_.back();
      open_.pop_back();
      if (at.in_fraction)
        write_fraction(at, state);
      else
        write_whole(at, state);
    }
    return result;
  }

 private:
  /// What counts of the digits so far. `low`, `high`: how they compare with as many digits of the bounds.
  struct place {
    bool in_fraction = false;
    std::int32_t digits = 0, behind_point = 0;
    int low = 0, high = 0;
    auto operator<=>(const place&) const = default;
  };

  std::int32_t state_of(const place& at) {
    const auto [known, is_new] = states_.try_emplace(at, -1);
    if (!is_new) return known->second;
    known->second = to_.state();
    open_.emplace_back(at, known->second);
    return known->second;
  }

  /// `behind`: the place behind a digit, if it may come. Neighbours that lead to the same one share an edge.
  template <class Behind>
  void join_digits(std::int32_t state, char from, Behind behind) {
    const auto next_to = [](char digit) { return static_cast<char>(digit + 1); };
    for (char first = from; first <= '9';) {
      const std::optional<place> next = behind(first);
      char last = first;
      while (last < '9' && behind(next_to(last)) == next) last = next_to(last);
      if (next)
        to_.join_by_bytes(state, static_cast<std::uint8_t>(first), static_cast<std::uint8_t>(last), state_of(*next));
      first = next_to(last);
    }
  }

  static int compared(char digit, const std::string& with, std::int32_t at, int so_far) {
    if (so_far != 0) return so_far;
    const char other = to_size(at) < with.size() ? with[to_size(at)] : '0';
    return digit < other ? -1 : digit > other;
  }

  /// Of whole parts, one that is longer than a bound's is more.
  std::optional<place> behind_whole(const place& at, char digit) const {
    const auto against = [&](const number_bound& bound, int so_far) {
      return at.digits < length_of(bound) ? compared(digit, bound.value.whole, at.digits, so_far) : 1;
    };
    if (at.digits >= (high_ ? length_of(*high_) : most_whole)) return std::nullopt;
    return place{false, at.digits + 1, 0, against(low_, at.low), high_ ? against(*high_, at.high) : -1};
  }

  void write_whole(const place& at, std::int32_t state) {
    const bool begins = at.digits == 0;
    if (begins) {
      const std::int32_t zero = to_.state();
      to_.join_by_bytes(state, '0', '0', zero);
      end_whole(*behind_whole(at, '0'), zero, 0);
    } else {
      end_whole(at, state, at.digits);
    }
    join_digits(state, begins ? '1' : '0', [&](char digit) { return behind_whole(at, digit); });
  }

  /// `counted`: digits of the whole part that do not leave room for others behind the point.
  void end_whole(const place& at, std::int32_t state, std::int32_t counted) {
    const int low = at.digits < length_of(low_) ? -1 : at.low;
    const int high = high_ && at.digits == length_of(*high_) ? at.high : -1;
    if (low < 0 || high > 0) return;
    const place point{true, counted, 0, low, high};
    if (may_end(point)) to_.join(state, end_);
    if (kind_ == number_kind::any && counted < most_compared) to_.join(state, to_.text("."), state_of(settled(point)));
  }

  static bool is_over(const number_bound& bound, const place& at) {
    return to_size(at.behind_point) >= bound.value.fraction.size();
  }

  /// Of digits that are those of a bound so far.
  bool may_end(const place& at) const {
    if (at.low == 0 && (!is_over(low_, at) || low_.excluded)) return false;
    return at.high != 0 || !is_over(*high_, at) || !high_->excluded;
  }

  /// Places are one where nothing is left to be compared.
  place settled(place at) const {
    if (at.low == 0 && is_over(low_, at) && !low_.excluded) at.low = 1;
    if (at.low != 0 && at.high != 0) at.behind_point = std::min(at.behind_point, 1);
    return at;
  }

  std::optional<place> behind_fraction(const place& at, char digit) const {
    const int low = compared(digit, low_.value.fraction, at.behind_point, at.low);
    const int high = high_ ? compared(digit, high_->value.fraction, at.behind_point, at.high) : -1;
    if (low < 0 || high > 0) return std::nullopt;
    return settled({true, at.digits + 1, at.behind_point + 1, low, high});
  }

  void write_fraction(const place& at, std::int32_t state) {
    if (at.behind_point > 0 && may_end(at)) to_.join(state, end_);
    if (at.digits < most_compared) join_digits(state, '0', [&](char digit) { return behind_fraction(at, digit); });
  }

  grammar_builder& to_;
  number_bound low_;
  std::optional<number_bound> high_;
  number_kind kind_;
  std::int32_t end_;
  std::map<place, std::int32_t> states_;
  std::vector<std::pair<place, std::int32_t>> open_;
};

/// `up`, `down`: whether the number may become larger by it, or smaller.
piece exponent(grammar_builder& to, bool up, bool down) {
  if (!up && !down) return to.nothing();
  std::vector<piece> signs;
  if (up) signs = {to.nothing(), to.text("+")};
  if (down) signs.push_back(to.text("-"));
  return to.optional(to.sequence({to.one_of_texts({"e", "E"}), to.any_of(signs), digits(to, 1, 2)}));
}

/// Any number without a sign.
piece free_number(grammar_builder& to) {
  const piece whole = to.any_of({to.text("0"), to.sequence({to.bytes('1', '9'), digits(to, 0, most_whole - 1)})});
  const piece fraction = to.optional(to.sequence({to.text("."), digits(to, 1, most_compared)}));
  return to.sequence({whole, fraction, exponent(to, true, true)});
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
  parts.push_back(write(from, high));
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

/// `is_open`: the bound would only exclude what is farther from zero than it is. One that lies beyond all numbers
/// without an exponent still excludes exponents, unless it lies beyond those, too.
std::optional<number_bound> bound_of(decimal value, bool excluded, number_kind kind, bool is_open,
                                     std::string_view where) {
  if (value.whole.size() <= to_size(most_whole)) return number_bound{std::move(value), excluded};
  if (!is_open) refuse("{}: has more than {} digits before the point: use fewer", where, most_whole);
  if (kind == number_kind::whole || value.whole.size() > most_with_exponent) return std::nullopt;
  value.whole = std::string(to_size(most_whole), '9');
  return number_bound{std::move(value), false};
}

}  // namespace

decimal whole_decimal(std::string_view text) {
  const bool negative = text.starts_with('-');
  return {.negative = negative, .whole = std::string(text.substr(negative)), .fraction = {}};
}

decimal decimal_of(double value, std::string_view where) {
  const double size = std::fabs(value);
  decimal result{.negative = std::signbit(value), .whole = fmt::format("{:.0f}", std::floor(size)), .fraction = {}};
  if (size == std::floor(size)) return result;
  const std::size_t counted = result.whole == "0" ? 0 : result.whole.size();
  const std::size_t left = to_size(most_compared) - std::min(counted, to_size(most_compared));
  const std::string text = fmt::format("{:.{}f}", size, left);
  if (std::stod(text) != size) refuse("{}: {} has more than {} digits: use fewer", where, value, most_compared);
  result.whole = text.substr(0, text.find('.'));
  result.fraction = text.substr(text.find('.') + 1, text.find_last_not_of('0') - text.find('.'));
  return result;
}

std::optional<number_bound> low_bound(decimal value, bool excluded, number_kind kind, std::string_view where) {
  const bool is_open = value.negative;
  return bound_of(std::move(value), excluded, kind, is_open, where);
}

std::optional<number_bound> high_bound(decimal value, bool excluded, number_kind kind, std::string_view where) {
  const bool is_open = !value.negative;
  return bound_of(std::move(value), excluded, kind, is_open, where);
}

piece integer_piece(grammar_builder& to, const number_range& range) {
  return both_sides(to, range, false, [&](const number_bound& low, const std::optional<number_bound>& high) {
    return range_writer(to, low, high, number_kind::whole).write();
  });
}

piece number_piece(grammar_builder& to, const number_range& range) {
  return both_sides(to, range, true, [&](const number_bound& low, const std::optional<number_bound>& high) {
    const bool from_zero = low.value.is_zero();
    if (!high && from_zero && !low.excluded) return free_number(to);
    const piece number = range_writer(to, low, high, number_kind::any).write();
    return to.sequence({number, exponent(to, !high, from_zero)});
  });
}

}  // namespace troupe::detail
