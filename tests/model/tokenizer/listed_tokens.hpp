#pragma once
#include <string>
#include <vector>

#include "base/to_size.hpp"
#include "model/tokenizer/tokenizer.hpp"

namespace troupe::test {

/// A vocabulary that is a list of texts. It cannot encode.
class listed_tokens : public tokenizer {
 public:
  std::vector<token_id> encode(std::string_view, encode_options) const override { return {}; }
  std::string_view bytes_of(token_id token) const override {
    return token >= 0 && token < size() ? std::string_view(texts_[to_size(token)]) : "";
  }
  std::string decode(std::span<const token_id> tokens, bool) const override {
    std::string text;
    for (const token_id token : tokens)
      if (!is_special(token)) text += bytes_of(token);
    return text;
  }
  bool strips_leading_space() const override { return false; }
  std::int32_t size() const override { return static_cast<std::int32_t>(texts_.size()); }
  bool is_special(token_id) const override { return false; }
  std::optional<token_id> find(std::string_view) const override { return std::nullopt; }
  std::optional<token_id> bos() const override { return std::nullopt; }
  std::optional<token_id> eos() const override { return std::nullopt; }

 protected:
  void add_bytes() {
    for (int byte = 0; byte < 256; ++byte) texts_.emplace_back(1, static_cast<char>(byte));
  }

  std::vector<std::string> texts_;
};

}  // namespace troupe::test
