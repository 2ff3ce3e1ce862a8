// What a client may ask of an answer's form. It travels as text; what it allows is found out where tokens are chosen.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/fields.hpp"
#include "model/grammar/byte_grammar.hpp"

namespace troupe {

enum class constraint_kind : std::uint8_t {
  none,
  json_object,  ///< any JSON object
  json_schema,  ///< JSON that the schema `text` accepts
  regex,        ///< what the expression `text` matches as a whole
  choice,       ///< one of the texts in the JSON list `text`
  grammar,      ///< what the rule `root` of the grammar `text` allows
  calls         ///< any text; in it `before` begins JSON that the schema `text` accepts, and `after` ends it
};
constexpr constraint_kind last_enumerator(constraint_kind) {
  return constraint_kind::calls;
}
std::string_view name_of(constraint_kind kind);

/// JSON that a schema accepts, as a family of models writes it when it calls a tool.
struct tool_call_form {
  std::string schema;
  std::string before, after;  ///< written around it, as they are

  explicit operator bool() const { return !schema.empty(); }
  friend bool operator==(const tool_call_form&, const tool_call_form&) = default;

  auto fields() { return std::tie(schema, before, after); }
};

struct output_constraint {
  constraint_kind kind = constraint_kind::none;
  std::string text;
  std::string before = {}, after = {};  ///< written around it, as they are
  tool_call_form call = {};             ///< what may be written instead, where it is given

  std::size_t bytes() const {
    return text.size() + before.size() + after.size() + call.schema.size() + call.before.size() + call.after.size();
  }
  explicit operator bool() const { return kind != constraint_kind::none; }
  friend bool operator==(const output_constraint&, const output_constraint&) = default;

  auto fields() { return std::tie(kind, text, before, after, call); }
};

constexpr std::size_t most_constraint_bytes = std::size_t{256} << 10;

/// Throws input_error that says what of the constraint is wrong or not supported, or that no text of `alphabet`
/// satisfies it.
std::shared_ptr<const byte_grammar> compile(const output_constraint& constraint, const byte_set& alphabet);

}  // namespace troupe
