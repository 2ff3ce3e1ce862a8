#pragma once
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/tokenizer/tokenizer.hpp"

namespace troupe {

/// The file that a model's tokenizer comes from ("tokenizer.json", "GGUF"); empty where the model has none.
std::string tokenizer_kind(const std::filesystem::path& model);
/// The tokenizer of a model folder or a .gguf file. Throws input_error when there is none.
std::shared_ptr<const tokenizer> open_tokenizer(const std::filesystem::path& model);
/// Stands for the tokenizer of a model that has none: every token is the empty text.
std::shared_ptr<const tokenizer> no_tokenizer();

/// The source of the model's chat template, from chat_template.jinja, tokenizer_config.json or GGUF metadata.
std::optional<std::string> find_chat_template(const std::filesystem::path& model);
/// One user message, and a system message if `system` is not empty, as the model's template writes them.
std::string chat_text(const std::filesystem::path& model, const tokenizer& tokens, std::string_view system,
                      std::string_view message);

}  // namespace troupe
