#pragma once
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/tokenizer/tokenizer.hpp"

namespace troupe {

class chat_template;

/// The file that a model's tokenizer comes from ("tokenizer.json", "GGUF"); empty where the model has none.
std::string tokenizer_kind(const std::filesystem::path& model);
/// The tokenizer of a model folder or a .gguf file. Throws input_error when there is none.
std::shared_ptr<const tokenizer> open_tokenizer(const std::filesystem::path& model);
/// Stands for the tokenizer of a model that has none: every token is the empty text.
std::shared_ptr<const tokenizer> no_tokenizer();

/// The source of the model's chat template, from chat_template.jinja, tokenizer_config.json or GGUF metadata.
std::optional<std::string> find_chat_template(const std::filesystem::path& model);
/// The tokens of a plain prompt; of an empty one BOS alone. Throws input_error where there is no BOS; `model` is what
/// the error calls it.
std::vector<token_id> prompt_of_text(const tokenizer& tokens, std::string_view text, const std::string& model);
/// The tokens of a rendered chat, whose template writes BOS itself.
std::vector<token_id> prompt_of_chat(const tokenizer& tokens, std::string_view rendered);

/// What a chat template is given, as JSON texts.
struct chat_input {
  std::string messages;   ///< a list of {role, content}; an assistant's content may be null beside tool_calls
  std::string tools;      ///< a list of tools that may be called; empty: none
  std::string variables;  ///< an object of further ones that the template may know; empty: none
  bool add_generation_prompt = true;
};

/// How a model writes chats: its own template, parsed once. Immutable; any number of threads may use it.
class chat_format {
 public:
  /// Throws input_error where the model has no template, or none that can be read.
  chat_format(const std::filesystem::path& model, std::shared_ptr<const tokenizer> tokens);
  ~chat_format();

  /// `messages`: a JSON list of {role, content}. The text ends where the assistant's answer begins. Throws input_error.
  std::string render(std::string_view messages) const;
  std::string render(const chat_input& chat) const;
  /// One user message, and a system message if `system` is not empty.
  std::string render(std::string_view system, std::string_view message) const;

  const std::string& source() const { return source_; }

 private:
  std::shared_ptr<const tokenizer> tokens_;
  std::string source_;
  std::unique_ptr<const chat_template> template_;
};

}  // namespace troupe
