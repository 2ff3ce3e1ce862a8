#pragma once
#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

namespace troupe {

/// How much one rendering may cost. A template comes with a model from outside, so it must not be able to hang the
/// server or exhaust its memory.
struct render_limits {
  std::size_t steps = 20'000'000;            // nodes evaluated, elements visited, 16-byte pieces of text scanned
  std::size_t bytes = std::size_t{1} << 27;  // everything built on the way, the rendered text included
  std::size_t depth = 500;                   // expressions, statements and macro calls inside one another
};

struct render_options {
  // What strftime_now sees, in UTC; if empty, the system's clock in its time zone.
  std::optional<std::chrono::system_clock::time_point> now;
  render_limits limits;
};

/// A model's own chat template: the part of Jinja that published templates use, under the settings of the reference
/// (trim_blocks, lstrip_blocks, loop controls, no autoescape, sandboxed: lists and dicts cannot be changed in place).
/// Differences:
/// - What `safe` and `escape` give is a text as any other, where Jinja's escapes whatever is added to it later.
/// - Case is that of Latin, Greek and Cyrillic, letter by letter (text.hpp); digits and numbers are those of ASCII.
/// - range() gives a list; views of dicts and generators are printed in words of our own; macros have no attributes.
/// - Named arguments are not unpacked (**). '{...}'.format has no fill, no ^ and no grouping, and refuses what it
///   lacks.
///
/// Immutable once parsed; any number of threads may render it.
class chat_template {
 public:
  /// Throws input_error with line and column when the source is not a template. Filters and tests that nobody knows
  /// may stand in conditions and their branches: render() throws where it comes to one.
  chat_template(std::string_view source, const std::string& where);
  ~chat_template();
  chat_template(chat_template&&) noexcept;
  chat_template& operator=(chat_template&&) noexcept;

  /// `variables`: messages, tools, add_generation_prompt, bos_token, eos_token … in the order they should print.
  /// Throws input_error with what the template raised (raise_exception) or could not evaluate, and its line.
  std::string render(const nlohmann::ordered_json& variables, const render_options& options = {}) const;

 private:
  struct impl;
  std::unique_ptr<impl> impl_;
};

}  // namespace troupe
