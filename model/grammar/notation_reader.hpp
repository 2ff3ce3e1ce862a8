#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "model/grammar/code_points.hpp"

namespace troupe::detail {

/// What reading an expression and reading a grammar's rules have in common.
class notation_reader {
 protected:
  explicit notation_reader(std::string_view text) : text_(text) {}
  ~notation_reader() = default;

  /// Throws input_error that says why, and where in the text.
  [[noreturn]] virtual void fail(std::string_view why) const = 0;

  bool at_end() const { return at_ >= text_.size(); }
  char peek(std::size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }
  bool take(std::string_view wanted);
  char32_t character();
  /// How many times, if a number is next.
  std::optional<std::int32_t> repetitions();
  /// The character whose number has so many digits; 0: as many as there are before a brace.
  char32_t numbered_character(int digits);
  /// What a class of these ranges stands for.
  code_point_set class_of(std::vector<code_point_set::range> ranges, bool inverted) const;

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace troupe::detail
