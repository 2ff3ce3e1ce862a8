#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "model/chat/ast.hpp"

namespace troupe::detail::jinja {

enum class token_kind { text, print_begin, print_end, tag_begin, tag_end, name, string, integer, real, symbol, end };

struct token {
  token_kind kind;
  std::string text;  // text, name, symbol, digits, or a string literal with its escapes resolved
  position at;
};

/// Throws input_error: "WHERE: line L, column C: …".
[[noreturn]] void refuse_at(const std::string& where, position at, std::string_view why);

/// Splits a template into its text and the tokens inside {{ }} and {% %}, white space control already applied.
std::vector<token> tokenize(std::string_view source, const std::string& where);

}  // namespace troupe::detail::jinja
