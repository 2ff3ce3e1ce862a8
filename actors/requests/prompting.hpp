// Makes what a replica computes from what a client asks, over whatever interface. Uses the model's tokenizer and
// templates, not its weights. Immutable, so any number of threads may use one.
#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/engine/engine_request.hpp"
#include "model/formats/model_config.hpp"
#include "model/text/chat_format.hpp"

namespace troupe {

/// In bytes: a longer request is read on another thread, since one of this length takes some milliseconds to tokenize.
inline constexpr std::size_t longest_at_once = 64 << 10;

/// A prompt: exactly one of text, tokens and chat.
struct prompt_input {
  std::optional<std::string> text = {};  ///< "" is the model's BOS token alone
  std::vector<token_id> tokens = {};
  std::optional<chat_input> chat = {};
  const char* field = "prompt";   ///< the request's field that has the prompt, for errors
  bool add_special = true;        ///< BOS and the like come with a text, where the tokenizer says so
  std::string answer_begin = {};  ///< what the answer's beginning is made to be, behind a chat's prompt for it
  std::int64_t most_tokens = 0;   ///< of a longer prompt the last are kept; 0: all; -1: what leaves the answer room
  bool keeps_first = false;       ///< the first tokens of a longer prompt are kept instead
};

class prompting {
 public:
  /// `model`: the folder of the tokenizer and the chat template. `context`: 0 for the model's own. Throws input_error.
  prompting(const std::filesystem::path& model, model_config config, std::int64_t context);

  /// Throws input_error that says what is wrong with the request, field_error if one field is at fault. max_tokens
  /// and min_tokens are cut to what the context holds. An answer of a demanded form has its channel.
  engine_request prepare(const prompt_input& prompt, const sampling_params& sampling, std::int32_t answers,
                         request_priority priority) const;

  /// The prompt's tokens as prepare() has them, also where they are too many. Throws field_error.
  std::vector<token_id> encode(const prompt_input& prompt, const sampling_params& sampling = {}) const;
  /// Refuses a text of more bytes than a context's tokens can stand for. Called before encoding, which takes long.
  void check_size(std::string_view text, const char* field) const;
  /// Throws input_error if no answer can have this form. Quick if the last call asked for the same form.
  void check_constraint(const output_constraint& constraint) const;

  const tokenizer& tokens() const { return *tokens_; }
  bool has_tokenizer() const { return readable_; }
  /// Why messages are refused; empty if the model has a chat template.
  const std::string& no_chat() const { return no_chat_; }
  /// The source of the chat template for requests with tools; empty if the model has none.
  const std::string& tool_template() const;
  /// Whether an answer's text has special tokens, since they tell what is said in it.
  bool shows_special(const prompt_input& prompt) const;
  const model_config& config() const { return config_; }
  std::int64_t context() const { return context_; }

 private:
  /// Whether the answer is put into the last channel.
  bool begins_in_final(const prompt_input& prompt, const output_constraint& form) const;
  std::vector<token_id> tokens_in(const prompt_input& prompt) const;
  /// Cuts tokens of a prompt as it says. `room`: how many leave the answer room.
  void shorten(std::vector<token_id>& tokens, const prompt_input& prompt, std::int64_t room) const;
  std::vector<token_id> encode_chat(const prompt_input& prompt) const;

  std::string model_;  ///< its name alone: where its files lie is not for those who send requests
  model_config config_;
  std::int64_t context_;
  bool readable_;
  std::shared_ptr<const tokenizer> tokens_;
  std::unique_ptr<const chat_format> chat_;  ///< null if the model has no chat template
  std::string no_chat_;                      ///< why chat_ is null; else empty
  std::vector<token_id> end_tokens_;
  byte_set spelled_;           ///< the bytes that tokens can spell, of which constraints may be made
  std::size_t longest_token_;  ///< in bytes
  mutable std::mutex checked_mutex_;
  mutable output_constraint checked_;  ///< the last good one: requests of many prompts repeat it
};

}  // namespace troupe
