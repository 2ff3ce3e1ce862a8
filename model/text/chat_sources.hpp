#pragma once
#include <filesystem>
#include <map>
#include <optional>
#include <string>

namespace troupe {

/// What a model's files say of its chats.
struct chat_sources {
  std::string usual;                              ///< the template
  std::string with_tools = {};                    ///< another one for requests with tools; empty: the same
  std::map<std::string, std::string> texts = {};  ///< of special tokens, by name: "pad_token" …
  bool leaves_bos = false;                        ///< to the tokenizer, as templates in GGUF files may

  const std::string& for_tools() const { return with_tools.empty() ? usual : with_tools; }
};

/// From chat_template.jinja and additional_chat_templates, tokenizer_config.json, chat_template.json (older folders of
/// models that see pictures), of a file from the template beside it, or from GGUF metadata; none where the model has no
/// template.
std::optional<chat_sources> find_chat_sources(const std::filesystem::path& model);

}  // namespace troupe
