// From what a client asks to what a replica computes, by whatever way it came. Knows the model's texts, not its
// weights. Immutable: any number of threads may use one.
#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/engine/replica_scheduler.hpp"
#include "model/engine/text/chat_format.hpp"
#include "model/formats/model_config.hpp"

namespace troupe {

/// What is to be answered: exactly one of text, tokens and messages.
struct prompt_input {
  std::optional<std::string> text = {};  ///< "" is the model's BOS token alone
  std::vector<token_id> tokens = {};
  std::string messages = {};            ///< a JSON list of {role, content}
  std::string tools = {};               ///< with messages: a JSON list of tools
  std::string template_variables = {};  ///< with messages: a JSON object of more that the template may know
  bool add_generation_prompt = true;    ///< with messages: the text ends where the assistant's answer begins
  const char* field = "prompt";         ///< of the request that has it, as errors name it
};

/// Ready for the router once its adapter has a version.
struct prepared_request {
  engine_request engine;
  bool at_start = true;  ///< no text goes before the answer
};

class prompting {
 public:
  /// `model`: where the tokenizer and the chat template are. `context` 0: the model's own. Throws input_error.
  prompting(const std::filesystem::path& model, model_config config, std::int64_t context);
  ~prompting();

  /// Throws input_error that says what is wrong with the request, field_error where it is one field. max_tokens is cut
  /// to what the context holds.
  prepared_request prepare(const prompt_input& prompt, const sampling_params& sampling, std::int32_t answers,
                           request_priority priority) const;

  /// Throws field_error.
  std::vector<token_id> encode(const prompt_input& prompt) const;
  /// Before it is encoded, which takes long: refuses a text of more bytes than the context's tokens can stand for.
  void check_size(std::string_view text, const char* field) const;
  /// Throws input_error where no answer can have this form. Quick where the last one that was asked for is the same.
  void check_constraint(const output_constraint& constraint) const;

  const tokenizer& tokens() const { return *tokens_; }
  bool has_tokenizer() const { return readable_; }
  /// The source of the model's chat template; empty where it has none.
  /// By which requests with tools are written; empty: the model has none.
  const std::string& tool_template() const;
  const model_config& config() const { return config_; }
  std::int64_t context() const { return context_; }

 private:
  std::vector<token_id> tokens_in(const prompt_input& prompt) const;
  std::vector<token_id> encode_chat(const prompt_input& prompt) const;
  void check_tokens(const std::vector<token_id>& prompt) const;

  std::string model_;
  model_config config_;
  std::int64_t context_;
  bool readable_;
  std::shared_ptr<const tokenizer> tokens_;
  std::unique_ptr<const chat_format> chat_;  ///< none: the model has no template
  std::string no_chat_;                      ///< why
  std::vector<token_id> end_tokens_;
  byte_set spelled_;           ///< what constraints may be made of
  std::size_t longest_token_;  ///< in bytes
  mutable std::mutex checked_mutex_;
  mutable output_constraint checked_;  ///< the last that was found good: requests of many prompts have one
};

}  // namespace troupe
