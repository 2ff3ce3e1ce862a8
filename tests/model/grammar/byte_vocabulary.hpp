#pragma once
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "model/tokenizer/tokenizer.hpp"

namespace troupe::test {

/// A vocabulary for constraints: an end token, all bytes, and pieces that JSON often has. It cannot encode.
class byte_vocabulary final : public tokenizer {
 public:
  static constexpr token_id end = 0;

  explicit byte_vocabulary(bool pieces = true) {
    texts_ = {"</s>", "<pad>"};
    for (int byte = 0; byte < 256; ++byte) texts_.emplace_back(1, static_cast<char>(byte));
    if (!pieces) return;
    for (const char* text :
         {"{\"",  "\":", "\": ", "\": \"", "\",", "\", \"", "\"}",   "},",   "}]",    "]}",   "[]",    "{}",    "[{\"",
          " \"",  ", ",  "\n  ", "\n    ", "\n",  "true",   "false", "null", "tr",    "nul",  "10",    "12",    "100",
          "-1",   "0.5", ".0",   "00",     "e",   "a",      "an",    "name", "value", "item", "items", "the",   " the",
          "é",    "ö",   "漢",   "😀",      "\\n", "\\\"",   "\\u00", "\xc3", "id",    "kind", "red",   "green", "blue",
          "2024", "-0",  "1e5",  "ab",     "abc", "xyz",    "node",  "next", "left"})
      texts_.emplace_back(text);
  }

  std::vector<token_id> encode(std::string_view, encode_options) const override { return {}; }
  std::string_view bytes_of(token_id token) const override {
    return token >= 0 && token < size() ? std::string_view(texts_[static_cast<std::size_t>(token)]) : "";
  }
  std::string decode(std::span<const token_id> tokens, bool) const override {
    std::string text;
    for (const token_id token : tokens)
      if (!is_special(token)) text += bytes_of(token);
    return text;
  }
  bool strips_leading_space() const override { return false; }
  std::int32_t size() const override { return static_cast<std::int32_t>(texts_.size()); }
  bool is_special(token_id token) const override { return token == 0 || token == 1; }
  std::optional<token_id> find(std::string_view) const override { return std::nullopt; }
  std::optional<token_id> bos() const override { return std::nullopt; }
  std::optional<token_id> eos() const override { return end; }

 private:
  std::vector<std::string> texts_;
};

}  // namespace troupe::test
