#pragma once
#include <optional>
#include <string>

#include "model/chat/runtime.hpp"

namespace troupe::detail::jinja {

/// What str() makes of it: what {{ }} prints.
void print(text_builder& out, const value& v);
std::string printed(budget& cost, const value& v);
/// What repr() makes of it: strings quoted.
void print_quoted(text_builder& out, const value& v);

/// json.dumps's options; the reference keeps keys in order and text unescaped.
struct json_style {
  bool ascii_only = false;
  bool sorted_keys = false;
  std::optional<std::string> indent;  // one level's; without it all is one line
  std::string item_separator = ", ";
  std::string key_separator = ": ";
};

void print_json(text_builder& out, const value& v, const json_style& style);

}  // namespace troupe::detail::jinja
