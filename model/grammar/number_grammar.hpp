// Numbers between bounds, as JSON writes them. Bounds are compared digit by digit, so nothing is rounded.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "model/grammar/byte_grammar.hpp"

namespace troupe::detail {

/// A decimal number with few enough digits that every one like it is a double of its own.
struct decimal {
  bool negative = false;
  std::int64_t whole = 0;  ///< without the sign
  std::string fraction;    ///< digits behind the point, without zeros at the end

  bool is_zero() const { return whole == 0 && fraction.empty(); }
};

struct number_bound {
  decimal value;
  bool excluded = false;  ///< the bound itself is out of range
};
struct number_range {
  std::optional<number_bound> low, high;
};

enum class number_kind : std::uint8_t { whole, any };

/// Bounds that a schema says; `where` is what an error calls them. One beyond all numbers that can be written with it
/// excludes none of them: it becomes the last of those. Throws input_error where a bound has too many digits.
number_bound low_bound(double value, bool excluded, number_kind kind, std::string_view where);
number_bound high_bound(double value, bool excluded, number_kind kind, std::string_view where);

/// Whole numbers, of at most 15 digits where a bound is missing.
grammar_builder::piece integer_piece(grammar_builder& to, const number_range& range);
/// Numbers with at most 15 digits; without bounds also with an exponent.
grammar_builder::piece number_piece(grammar_builder& to, const number_range& range);

}  // namespace troupe::detail
