#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/tokenizer/pair_table.hpp"
#include "model/tokenizer/text_map.hpp"
#include "model/tokenizer/tokenizer.hpp"

namespace troupe::detail {

struct bpe_merge {
  token_id left = 0;
  token_id right = 0;
  token_id result = 0;
  std::int32_t rank = 0;  ///< lower merges first; where equal, the leftmost pair
};

struct bpe_rules {
  bool byte_level = false;  ///< words start as bytes (in GPT-2's spelling), not as characters
  bool byte_fallback = false;
  bool fuse_unknown = false;
  bool ignore_merges = false;  ///< a word that is a token as a whole is that token
  std::optional<token_id> unknown;
};

/// Byte-pair encoding of one word. Immutable: any number of threads may use one object.
class bpe {
 public:
  /// `tokens`: the model's vocabulary as written, by id. The merges' ids must be inside of it.
  bpe(const std::vector<std::string>& tokens, const std::vector<bpe_merge>& merges, bpe_rules rules);

  void encode(std::string_view word, std::vector<token_id>& out) const;

 private:
  class word_encoder;

  void index_characters(const std::vector<std::string>& tokens);
  void index_bytes(const std::vector<std::string>& tokens);
  void index_seams(const std::vector<std::string>& tokens, const std::vector<bpe_merge>& merges);
  void index_words(const std::vector<std::string>& tokens);
  token_id character_id(std::string_view character) const;

  bpe_rules rules_;
  pair_table merges_;      ///< (left, right) → (rank, result)
  pair_table characters_;  ///< code point → id
  pair_table seams_;       ///< symbols that some merge may join; a word is cut wherever none can
  bool has_seams_ = false;
  std::array<token_id, 256> bytes_{};  ///< the token of each single byte, or -1
  text_map<token_id> words_;           ///< only with ignore_merges
};

}  // namespace troupe::detail
