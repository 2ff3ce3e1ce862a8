#include "model/grammar/token_tree.hpp"

#include <algorithm>

#include "base/to_size.hpp"

namespace troupe {
namespace {

constexpr std::size_t longest_text = 512;

/// Behind the last token that both have.
token_id tokens_in_common(const tokenizer& tokens, std::int64_t vocab_size) {
  return static_cast<token_id>(std::min<std::int64_t>(vocab_size, tokens.size()));
}

}  // namespace

byte_set spelled_bytes(const tokenizer& tokens, std::int64_t vocab_size) {
  byte_set result;
  for (token_id token = 0; token < tokens_in_common(tokens, vocab_size); ++token) {
    const std::string_view bytes = tokens.bytes_of(token);
    if (bytes.size() == 1 && !tokens.is_special(token)) result.set(static_cast<unsigned char>(bytes[0]));
  }
  return result;
}

token_tree::token_tree(std::shared_ptr<const tokenizer> tokens, std::int64_t vocab_size)
    : tokenizer_(std::move(tokens)), vocab_size_(vocab_size), alphabet_(spelled_bytes(*tokenizer_, vocab_size)) {
  for (token_id token = 0; token < tokens_in_common(*tokenizer_, vocab_size); ++token) {
    const std::size_t length = bytes_of(token).size();
    if (length > 0 && length <= longest_text && !tokenizer_->is_special(token)) tokens_.push_back(token);
  }
  std::stable_sort(tokens_.begin(), tokens_.end(), [&](token_id a, token_id b) { return bytes_of(a) < bytes_of(b); });
  std::vector<std::uint32_t> path;  // the nodes of the text before
  std::string_view before;
  const auto close = [&](std::size_t depth) {
    for (; path.size() > depth; path.pop_back()) nodes_[path.back()].behind = static_cast<std::uint32_t>(nodes_.size());
  };
  for (std::uint32_t i = 0; i < tokens_.size(); ++i) {
    const std::string_view text = bytes_of(tokens_[i]);
    const auto shared =
        to_size(std::mismatch(text.begin(), text.end(), before.begin(), before.end()).first - text.begin());
    close(shared);
    for (std::size_t at = shared; at < text.size(); ++at) {
      path.push_back(static_cast<std::uint32_t>(nodes_.size()));
      nodes_.push_back({.behind = 0,
                        .first_token = i,
                        .last_token = i,
                        .depth = static_cast<std::uint16_t>(at + 1),
                        .byte = static_cast<std::uint8_t>(text[at])});
    }
    nodes_[path.back()].last_token = i + 1;
    longest_ = std::max(longest_, static_cast<std::int32_t>(text.size()));
    before = text;
  }
  close(0);
}

}  // namespace troupe
