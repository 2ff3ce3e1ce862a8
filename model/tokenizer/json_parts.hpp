#pragma once
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "model/tokenizer/added_tokens.hpp"
#include "model/tokenizer/bpe.hpp"
#include "model/tokenizer/normalizer.hpp"
#include "model/tokenizer/pre_tokenizer.hpp"
#include "model/tokenizer/text_map.hpp"

// The parts of a tokenizer.json, each read on its own. A null pointer stands for an absent or null part; `where` names
// file and part. What is not supported is refused by its name.
namespace troupe::detail {

normalizer read_normalizer(const nlohmann::json* part, const std::string& where);

struct pre_tokenizer_part {
  pre_tokenizer steps;
  bool byte_level = false;
};
pre_tokenizer_part read_pre_tokenizer(const nlohmann::json* part, const std::string& where);

struct decoder_part {
  bool byte_level = false;
  bool byte_fallback = false;
  bool strips_leading_space = false;
  std::vector<std::pair<std::string, std::string>> replacements;  ///< in their order

  std::string bytes_of(const std::string& token) const;
};
/// Without a decoder, tokens are read back the way the pre-tokenizer wrote them.
decoder_part read_decoder(const nlohmann::json* part, bool byte_level, const std::string& where);

struct template_part {
  bool present = false;
  std::vector<token_id> before;
  std::vector<token_id> after;
};
template_part read_post_processor(const nlohmann::json* part, const std::string& where);

/// `token` is what errors call it.
token_id checked_id(const nlohmann::json& value, const std::string& where, std::string_view token);
added_token read_added_token(const nlohmann::json& entry, token_id id, const std::string& where);
std::vector<added_token> read_added_tokens(const nlohmann::json* part, const std::string& where);

struct bpe_part {
  std::vector<std::pair<std::string, token_id>> tokens;
  text_map<token_id> ids;
  std::vector<bpe_merge> merges;
  bpe_rules rules;  ///< all but byte_level
};
bpe_part read_model(const nlohmann::json* part, bool byte_level, const std::string& where);

}  // namespace troupe::detail
