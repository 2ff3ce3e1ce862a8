#pragma once
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "tests/model/tokenizer/listed_tokens.hpp"

namespace troupe::test {

/// A vocabulary for constraints: an end token, all bytes, and pieces that JSON often has.
class byte_vocabulary final : public listed_tokens {
 public:
  static constexpr token_id end = 0;

  explicit byte_vocabulary(bool pieces = true) {
    texts_ = {"</s>", "<pad>"};
    add_bytes();
    if (!pieces) return;
    for (const char* text :
         {"{\"",  "\":", "\": ", "\": \"", "\",", "\", \"", "\"}",   "},",   "}]",    "]}",   "[]",    "{}",    "[{\"",
          " \"",  ", ",  "\n  ", "\n    ", "\n",  "true",   "false", "null", "tr",    "nul",  "10",    "12",    "100",
          "-1",   "0.5", ".0",   "00",     "e",   "a",      "an",    "name", "value", "item", "items", "the",   " the",
          "é",    "ö",   "漢",   "😀",      "\\n", "\\\"",   "\\u00", "\xc3", "id",    "kind", "red",   "green", "blue",
          "2024", "-0",  "1e5",  "ab",     "abc", "xyz",    "node",  "next", "left"})
      texts_.emplace_back(text);
  }

  bool is_special(token_id token) const override { return token == 0 || token == 1; }
  std::optional<token_id> eos() const override { return end; }
};

}  // namespace troupe::test
