#pragma once
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "model/tokenizer/regex.hpp"

namespace troupe::detail {

struct nfc_step {};
struct prepend_step {
  std::string prefix;
};
struct replace_text_step {
  std::string from;  ///< not empty
  std::string to;
};
struct replace_pattern_step {
  regex pattern;
  std::string to;
};

/// What happens to a stretch of text before it is cut into words: the steps in their order.
class normalizer {
 public:
  using step = std::variant<nfc_step, prepend_step, replace_text_step, replace_pattern_step>;

  void add(step next) { steps_.push_back(std::move(next)); }
  std::size_t steps() const { return steps_.size(); }
  /// The normalized text: `text` itself where nothing changes, else what is put into `storage`.
  /// Throws input_error when the steps make it grow out of proportion.
  std::string_view apply(std::string_view text, std::string& storage) const;

 private:
  std::vector<step> steps_;
};

/// What a text may grow to; published normalizers write three bytes for one at most. Stops a list of steps that each
/// double the text.
constexpr std::size_t most_grown(std::size_t bytes) {
  return 4096 + 16 * bytes;
}

std::string replace_all(std::string_view text, std::string_view from, std::string_view to);

}  // namespace troupe::detail
