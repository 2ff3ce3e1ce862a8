#pragma once
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/to_size.hpp"
#include "model/tokenizer/added_tokens.hpp"
#include "model/tokenizer/text_map.hpp"
#include "model/tokenizer/tokenizer.hpp"

namespace troupe::detail {

/// Turns text that holds no added token into tokens. Immutable.
class text_encoder {
 public:
  virtual ~text_encoder() = default;
  /// `at_start`: the text starts where the whole text starts.
  virtual void encode(std::string_view text, bool at_start, bool parse_special, std::vector<token_id>& out) const = 0;
};

/// All tokens by id.
struct vocabulary {
  std::vector<std::string> written;  ///< as the file writes them
  std::vector<std::string> bytes;    ///< what they stand for
  std::vector<bool> special;
  text_map<token_id> ids;  ///< by written form

  std::int32_t size() const { return static_cast<std::int32_t>(written.size()); }
  bool holds(token_id token) const { return token >= 0 && token < size(); }
  std::optional<token_id> find(std::string_view token) const;
  bool is_special(token_id token) const { return holds(token) && special[to_size(token)]; }
  void mark_special(std::optional<token_id> token) {
    if (token) special[to_size(*token)] = true;
  }
};

struct tokenizer_parts {
  vocabulary tokens;
  added_token_splitter added;
  std::shared_ptr<const text_encoder> model;
  std::vector<token_id> before;  ///< put around a text by the tokenizer's own rules
  std::vector<token_id> after;
  std::optional<token_id> bos;
  std::optional<token_id> eos;
  bool strips_leading_space = false;
};

/// The tokenizer that its parts make, whatever file they came from.
class text_tokenizer final : public tokenizer {
 public:
  explicit text_tokenizer(tokenizer_parts parts) : parts_(std::move(parts)) {}

  std::vector<token_id> encode(std::string_view text, encode_options options) const override;
  std::string_view bytes_of(token_id token) const override;
  std::string decode(std::span<const token_id> tokens, bool skip_special) const override;
  bool strips_leading_space() const override { return parts_.strips_leading_space; }
  std::int32_t size() const override { return parts_.tokens.size(); }
  bool is_special(token_id token) const override { return parts_.tokens.is_special(token); }
  std::optional<token_id> find(std::string_view token) const override { return parts_.tokens.find(token); }
  std::optional<token_id> bos() const override { return parts_.bos; }
  std::optional<token_id> eos() const override { return parts_.eos; }

 private:
  tokenizer_parts parts_;
};

}  // namespace troupe::detail
