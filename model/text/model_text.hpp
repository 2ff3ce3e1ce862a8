#pragma once
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/formats/model_config.hpp"
#include "model/tokenizer/tokenizer.hpp"

namespace troupe {

/// Stands for the tokenizer of a model that has none: every token is the empty text.
std::shared_ptr<const tokenizer> no_tokenizer();

/// The tokens that end an answer: the tokenizer's EOS, with which fine-tunes end what they teach, and what the model's
/// configuration names. For some chat models these are not the same.
std::vector<token_id> end_tokens_of(const model_config& config, const tokenizer& tokens);

/// Throws input_error where a text that was encoded has tokens that the model does not: the tokenizer is not its own.
void check_tokens(std::span<const token_id> text, std::int64_t vocab_size);
/// Throws input_error where the prompt names a token that the model does not have.
void check_prompt_tokens(std::span<const token_id> prompt, std::int64_t vocab_size);

/// The tokens of a plain prompt; of an empty one BOS alone, as the tokenizer names it, or else the configuration.
/// Throws input_error where there is no BOS; `model` is what the error calls it.
std::vector<token_id> prompt_of_text(const tokenizer& tokens, const model_config& config, std::string_view text,
                                     const std::string& model, encode_options options = {});
/// Whether the answer to a prompt begins a text, so that the space before its first word is left out: not where more
/// than special tokens is before it, nor where it has a form, which counts every byte of the tokens.
bool begins_text(const tokenizer& tokens, std::span<const token_id> prompt, bool has_form);
/// The tokens of a document, as a model reads it to be measured or to learn: names of special tokens in it are text.
std::vector<token_id> tokens_of_document(const tokenizer& tokens, std::string_view text);
/// The tokens of a rendered chat, whose template writes BOS itself.
std::vector<token_id> prompt_of_chat(const tokenizer& tokens, std::string_view rendered);

}  // namespace troupe
