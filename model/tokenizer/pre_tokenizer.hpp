#pragma once
#include <cstddef>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "model/tokenizer/regex.hpp"

namespace troupe::detail {

/// What becomes of the matches of a pattern that splits a text.
enum class split_behavior { isolated, removed, merged_with_previous, merged_with_next, contiguous };

struct split_step {
  regex pattern;
  split_behavior behavior = split_behavior::isolated;
  bool invert = false;  ///< the text between the matches takes their part
};
/// Puts a space before every word that does not start with one.
struct prefix_space_step {};
/// SentencePiece's way with spaces: each becomes a visible character, and words start at it.
struct metaspace_step {
  enum class prepend { always, first, never };
  std::string replacement;
  prepend where = prepend::always;
  bool split = true;
};

/// A text cut into words that the model tokenizes one by one.
struct word_list {
  struct range {
    std::size_t begin;
    std::size_t end;
  };
  std::string_view text;  ///< what the ranges count in: the caller's text, or `storage`
  std::string storage;
  std::vector<range> words;
  bool at_start = true;  ///< the first word starts where the whole text starts

  std::string_view word(const range& r) const { return text.substr(r.begin, r.end - r.begin); }
};

class pre_tokenizer {
 public:
  using step = std::variant<split_step, prefix_space_step, metaspace_step>;

  template <class Step>
  void add(Step next) {
    steps_.emplace_back(std::move(next));
  }
  std::size_t steps() const { return steps_.size(); }
  void apply(word_list& list) const;

 private:
  std::vector<step> steps_;
};

}  // namespace troupe::detail
