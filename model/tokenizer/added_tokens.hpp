#pragma once
#include <array>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/tokenizer/tokenizer.hpp"

namespace troupe::detail {

/// A token that is looked for in the text as it is written, before any other rule sees the text.
struct added_token {
  token_id id = 0;
  std::string content;
  bool special = false;
  bool single_word = false;  ///< only where no word character touches it
  bool lstrip = false;       ///< takes the white space before it along
  bool rstrip = false;       ///< takes the white space behind it along
  bool normalized = false;   ///< looked for in the normalized text, not in the text as it came
};

/// Cuts a text at the added tokens in it: leftmost first, and of those the longest.
class added_token_splitter {
 public:
  static constexpr std::size_t longest_content = 1024;

  using text_sink = std::function<void(std::string_view)>;
  using token_sink = std::function<void(token_id)>;

  /// `content`: how the token is written where it is looked for (normalized perhaps); not empty, not too long. Of
  /// tokens that are written alike the first is found.
  void add(added_token token, std::string content);
  bool empty() const { return tokens_.empty(); }
  /// Hands out text and tokens in their order. Special tokens count as text unless `parse_special`.
  void split(std::string_view text, bool parse_special, const text_sink& on_text, const token_sink& on_token) const;

 private:
  struct node {
    std::vector<std::pair<char, std::uint32_t>> children;  ///< few: looked through in order
    std::int32_t token = -1;                               ///< index into tokens_ of the one that ends here
  };
  struct found {
    std::int32_t token = -1;
    std::size_t length = 0;
  };

  found longest_at(std::string_view text, std::size_t at) const;
  std::uint32_t child(std::uint32_t parent, char byte) const;

  std::vector<added_token> tokens_;
  std::vector<node> nodes_{1};
  std::array<bool, 256> starts_{};
};

}  // namespace troupe::detail
