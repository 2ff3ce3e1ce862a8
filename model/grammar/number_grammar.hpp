// Numbers between bounds, as JSON writes them. Bounds are compared digit by digit, so nothing is rounded.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "model/grammar/byte_grammar.hpp"

namespace troupe::detail {

struct decimal {
  bool negative = false;
  std::string whole = "0";  ///< digits before the point
  std::string fraction;     ///< those behind it, without zeros at the end

  bool is_zero() const { return whole == "0" && fraction.empty(); }
};
/// A whole number as JSON writes it: digits, and perhaps a minus before them.
decimal whole_decimal(std::string_view text);
/// Throws input_error, which calls the number `where`, if a number with so many digits might be the same double as
/// another.
decimal decimal_of(double value, std::string_view where);

struct number_bound {
  decimal value;
  bool excluded = false;  ///< the bound itself is out of range
};
struct number_range {
  std::optional<number_bound> low, high;
};

enum class number_kind : std::uint8_t { whole, any };

/// Bounds that a schema says; `where` is what an error calls them. None of one beyond all numbers that can be written,
/// which excludes none of them. Throws input_error where a bound excludes all.
std::optional<number_bound> low_bound(decimal value, bool excluded, number_kind kind, std::string_view where);
std::optional<number_bound> high_bound(decimal value, bool excluded, number_kind kind, std::string_view where);

/// Whole numbers of at most 19 digits, as those of 64 bits have.
grammar_builder::piece integer_piece(grammar_builder& to, const number_range& range);
/// Numbers with at most 15 digits before the point, and so many behind it; if they are compared with a bound, 15 in
/// all. They have an exponent where it does not bring them nearer to a bound.
grammar_builder::piece number_piece(grammar_builder& to, const number_range& range);

}  // namespace troupe::detail
