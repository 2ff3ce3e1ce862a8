#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

using token_id = std::int32_t;
/// No vocabulary has more: far above any there is.
inline constexpr std::int64_t most_vocabulary = std::int64_t{1} << 24;

/// Whether a vocabulary of that size has the token.
constexpr bool is_token(token_id token, std::int64_t vocab_size) {
  return token >= 0 && token < vocab_size;
}

struct gguf_file;

struct encode_options {
  bool add_special = true;    ///< put BOS/EOS where the tokenizer's own rules say so
  bool parse_special = true;  ///< read special tokens written out in the text ("<|im_end|>") as those tokens
};

/// Text to tokens and back. Immutable: any number of threads may use one object.
class tokenizer {
 public:
  virtual ~tokenizer() = default;

  /// Takes any bytes. Throws input_error only if a pattern of the tokenizer's file takes too long to match, or its
  /// normalizer makes the text explode: that happens with files made to do harm, not with published ones.
  virtual std::vector<token_id> encode(std::string_view text, encode_options options = {}) const = 0;
  /// The bytes that a token stands for, without any rule about its place in the text; special tokens as written.
  virtual std::string_view bytes_of(token_id token) const = 0;
  /// Whole text of a sequence. Invalid UTF-8 stays as the bytes are; special tokens are left out when `skip_special`.
  virtual std::string decode(std::span<const token_id> tokens, bool skip_special = true) const = 0;
  /// True where the tokenizer puts a space before the text that decode takes away again (SentencePiece's dummy prefix).
  virtual bool strips_leading_space() const = 0;

  virtual std::int32_t size() const = 0;  ///< tokens, added ones included
  virtual bool is_special(token_id token) const = 0;
  virtual std::optional<token_id> find(std::string_view token) const = 0;  ///< by its written form
  virtual std::optional<token_id> bos() const = 0;
  virtual std::optional<token_id> eos() const = 0;
};

/// The tokenizer of a .gguf file or a model folder: tokenizer.json, else tokenizer.model, else metadata.gguf; with
/// tokenizer_config.json beside it for BOS/EOS rules. Throws input_error naming file and cause.
std::shared_ptr<const tokenizer> load_tokenizer(const std::filesystem::path& model);
/// The file that this is ("tokenizer.json", "tokenizer.model", "GGUF"); empty where the model has none.
std::string tokenizer_kind(const std::filesystem::path& model);
std::shared_ptr<const tokenizer> tokenizer_from_gguf(const gguf_file& file);
/// `config` is the text of tokenizer_config.json, or empty.
std::shared_ptr<const tokenizer> parse_tokenizer_json(std::string_view json, std::string_view config,
                                                      const std::string& where);

/// Turns a stream of tokens into text, holding bytes back until they are whole characters.
class stream_decoder {
 public:
  /// `at_start`: no text goes before, so a leading space that the tokenizer put there is taken away again.
  explicit stream_decoder(const tokenizer& tokens, bool skip_special = true, bool at_start = true);
  /// The text that became certain with this token; never ends inside a character.
  std::string push(token_id token);
  /// What was held back, invalid bytes replaced by U+FFFD.
  std::string finish();

 private:
  const tokenizer& tokens_;
  bool skip_special_;
  bool at_start_;
  std::string held_;
};

}  // namespace troupe
