#pragma once
#include "model/tokenizer/added_tokens.hpp"
#include "model/tokenizer/bpe.hpp"
#include "model/tokenizer/normalizer.hpp"
#include "model/tokenizer/pre_tokenizer.hpp"
#include "model/tokenizer/text_tokenizer.hpp"

namespace troupe::detail {

/// Normalize, cut at the added tokens that are looked for in normalized text, cut into words, merge each word.
class bpe_model final : public text_encoder {
 public:
  bpe_model(normalizer normalize, added_token_splitter added, pre_tokenizer cut, bpe merge)
      : normalize_(std::move(normalize)), added_(std::move(added)), cut_(std::move(cut)), merge_(std::move(merge)) {}

  void encode(std::string_view text, bool at_start, bool parse_special, std::vector<token_id>& out) const override;

 private:
  void encode_plain(std::string_view text, bool at_start, std::vector<token_id>& out) const;

  normalizer normalize_;
  added_token_splitter added_;
  pre_tokenizer cut_;
  bpe merge_;
};

}  // namespace troupe::detail
