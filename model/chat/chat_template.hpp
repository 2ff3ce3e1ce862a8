#pragma once
#include <memory>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

namespace troupe {

/// A model's own chat template: the part of Jinja that published templates use. Immutable once parsed.
class chat_template {
 public:
  /// Throws input_error with line and column when the source is not a template.
  chat_template(std::string_view source, const std::string& where);
  ~chat_template();
  chat_template(chat_template&&) noexcept;
  chat_template& operator=(chat_template&&) noexcept;

  /// `variables`: messages, tools, add_generation_prompt, bos_token, eos_token … in the order they should print.
  /// Throws input_error with what the template raised (raise_exception) or could not evaluate, and its line.
  std::string render(const nlohmann::ordered_json& variables) const;

 private:
  struct impl;
  std::unique_ptr<impl> impl_;
};

}  // namespace troupe
