// All tokens of a vocabulary as a tree of bytes, laid out in the order in which it is walked. Immutable: any number of
// threads may use one.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "model/grammar/byte_grammar.hpp"
#include "model/tokenizer/tokenizer.hpp"

namespace troupe {

/// Bytes for which there is a token of their own that the model has: whatever is made of them can be written.
byte_set spelled_bytes(const tokenizer& tokens, std::int64_t vocab_size);

class token_tree {
 public:
  struct node {
    std::uint32_t behind;  ///< the node after all below this one
    std::uint32_t first_token, last_token;
    std::uint16_t depth;  ///< of the byte, from 1
    std::uint8_t byte;
  };

  /// `vocab_size`: of the model; what is beyond the tokenizer has no text. Special tokens and those of more than 512
  /// bytes are left out: they are no text of an answer.
  token_tree(std::shared_ptr<const tokenizer> tokens, std::int64_t vocab_size);

  std::span<const node> nodes() const { return nodes_; }
  std::span<const token_id> tokens_of(const node& at) const {
    return std::span(tokens_).subspan(at.first_token, at.last_token - at.first_token);
  }
  std::int32_t longest() const { return longest_; }
  std::int64_t vocab_size() const { return vocab_size_; }
  const byte_set& alphabet() const { return alphabet_; }
  std::string_view bytes_of(token_id token) const { return tokenizer_->bytes_of(token); }

 private:
  std::shared_ptr<const tokenizer> tokenizer_;
  std::int64_t vocab_size_;
  byte_set alphabet_;
  std::vector<node> nodes_;
  std::vector<token_id> tokens_;  ///< sorted by their bytes
  std::int32_t longest_ = 0;
};

}  // namespace troupe
