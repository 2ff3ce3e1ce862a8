#include "model/engine/text/model_text.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/paths.hpp"
#include "model/formats/gguf.hpp"

namespace troupe {

namespace fs = std::filesystem;

namespace {

bool has_vocabulary(const fs::path& model) {
  const auto metadata = find_gguf_metadata(model);
  return metadata && metadata->metadata.contains("tokenizer.ggml.tokens");
}

class absent_tokenizer : public tokenizer {
 public:
  std::vector<token_id> encode(std::string_view, encode_options) const override { return {}; }
  std::string_view bytes_of(token_id) const override { return {}; }
  std::string decode(std::span<const token_id>, bool) const override { return {}; }
  bool strips_leading_space() const override { return false; }
  std::int32_t size() const override { return 0; }
  bool is_special(token_id) const override { return false; }
  std::optional<token_id> find(std::string_view) const override { return std::nullopt; }
  std::optional<token_id> bos() const override { return std::nullopt; }
  std::optional<token_id> eos() const override { return std::nullopt; }
};

}  // namespace

std::string tokenizer_kind(const fs::path& model) {
  if (is_folder(model))
    for (const char* name : {"tokenizer.json", "tokenizer.model"})
      if (path_exists(model / name)) return name;
  return has_vocabulary(model) ? "GGUF" : "";
}

std::shared_ptr<const tokenizer> open_tokenizer(const fs::path& model) {
  if (is_folder(model)) return load_tokenizer(model);
  return tokenizer_from_gguf(open_gguf(model));
}

std::shared_ptr<const tokenizer> no_tokenizer() {
  return std::make_shared<const absent_tokenizer>();
}

std::vector<token_id> end_tokens_of(const model_config& config, const tokenizer& tokens) {
  std::vector<token_id> ends;
  if (tokens.eos() && *tokens.eos() < config.vocab_size) ends.push_back(*tokens.eos());
  for (const token_id token : config.eos_tokens)
    if (std::find(ends.begin(), ends.end(), token) == ends.end()) ends.push_back(token);
  return ends;
}

void check_prompt_tokens(std::span<const token_id> prompt, std::int64_t vocab_size) {
  for (const token_id token : prompt)
    if (token < 0 || token >= vocab_size)
      refuse("the prompt names token {}: the model has tokens 0 to {}", token, vocab_size - 1);
}

std::vector<token_id> prompt_of_text(const tokenizer& tokens, const model_config& config, std::string_view text,
                                     const std::string& model, encode_options options) {
  auto encoded = tokens.encode(text, options);
  if (!encoded.empty()) return encoded;
  if (tokens.bos())
    encoded.push_back(*tokens.bos());
  else if (config.bos_token >= 0)
    encoded.push_back(config.bos_token);
  if (encoded.empty()) refuse("{}: has no BOS token to start from: give a prompt that is not empty", model);
  return encoded;
}

std::vector<token_id> prompt_of_chat(const tokenizer& tokens, std::string_view rendered) {
  return tokens.encode(rendered, {.add_special = false, .parse_special = true});
}

}  // namespace troupe
