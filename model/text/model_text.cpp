#include "model/text/model_text.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "model/tokenizer/text_tokenizer.hpp"

namespace troupe {
namespace {

class reads_nothing final : public detail::text_encoder {
  void encode(std::string_view, bool, bool, std::vector<token_id>&) const override {}
};

}  // namespace

std::shared_ptr<const tokenizer> no_tokenizer() {
  detail::tokenizer_parts parts;
  parts.model = std::make_shared<const reads_nothing>();
  return std::make_shared<const detail::text_tokenizer>(std::move(parts));
}

std::vector<token_id> end_tokens_of(const model_config& config, const tokenizer& tokens) {
  std::vector<token_id> ends;
  if (tokens.eos() && *tokens.eos() < config.vocab_size) ends.push_back(*tokens.eos());
  for (const token_id token : config.eos_tokens)
    if (std::find(ends.begin(), ends.end(), token) == ends.end()) ends.push_back(token);
  return ends;
}

void check_tokens(std::span<const token_id> text, std::int64_t vocab_size) {
  for (const token_id token : text)
    if (!is_token(token, vocab_size))
      refuse("token {} is not of the model's {}: the tokenizer belongs to another model", token, vocab_size);
}

void check_prompt_tokens(std::span<const token_id> prompt, std::int64_t vocab_size) {
  for (const token_id token : prompt)
    if (!is_token(token, vocab_size))
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

bool begins_text(const tokenizer& tokens, std::span<const token_id> prompt, bool has_form) {
  const auto is_special = [&](token_id token) { return tokens.is_special(token); };
  return !has_form && std::all_of(prompt.begin(), prompt.end(), is_special);
}

std::vector<token_id> tokens_of_document(const tokenizer& tokens, std::string_view text) {
  return tokens.encode(text, {.add_special = true, .parse_special = false});
}

std::vector<token_id> prompt_of_chat(const tokenizer& tokens, std::string_view rendered) {
  return tokens.encode(rendered, {.add_special = false, .parse_special = true});
}

}  // namespace troupe
