#pragma once
#include <utility>
#include <vector>

#include "model/grammar/byte_grammar.hpp"

namespace troupe::detail {

/// A set of characters, as ranges; never of surrogates, which are no characters.
class code_point_set {
 public:
  struct range {
    char32_t low, high;  ///< both included
  };
  static constexpr char32_t most = 0x10ffff;

  code_point_set() = default;
  code_point_set(std::initializer_list<range> ranges) : ranges_(ranges) { tidy(); }
  /// In any order, and they may overlap.
  explicit code_point_set(std::vector<range> ranges) : ranges_(std::move(ranges)) { tidy(); }

  code_point_set inverted() const;
  code_point_set without(const code_point_set& other) const;
  bool contains(char32_t character) const;
  bool empty() const { return ranges_.empty(); }
  const std::vector<range>& ranges() const { return ranges_; }  ///< in order, apart from each other

 private:
  void tidy();
  std::vector<range> ranges_;
};

/// What every engine takes \d, \w or \s for, and what any of them does: some mean ASCII, some all scripts. `letter` is
/// one of dws.
code_point_set narrow_class(char letter);
code_point_set wide_class(char letter);

/// Quote, backslash and control characters.
const code_point_set& json_escaped_characters();

/// One character of a set, in UTF-8.
grammar_builder::piece utf8_character(grammar_builder& to, const code_point_set& set);
/// One character of a set as it is written between the quotes of a JSON text: by its escape where it needs one.
grammar_builder::piece json_character(grammar_builder& to, const code_point_set& set);

}  // namespace troupe::detail
