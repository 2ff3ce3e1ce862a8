#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "model/chat/runtime.hpp"
#include "model/chat/text.hpp"

/// What string methods and text filters share.
namespace troupe::detail::jinja {

std::vector<std::string_view> split_lines(budget& cost, std::string_view text, bool keep_ends = false);
std::vector<std::string_view> split_spaces(budget& cost, std::string_view text, std::size_t limit, bool from_right);
/// In order of the text, also when counting from the right.
std::vector<std::string_view> split_text(budget& cost, std::string_view text, std::string_view separator,
                                         std::size_t limit, bool from_right);
/// Strips any of the characters that the first of `p` names; white space where it is None or left out.
value strip_text(budget& cost, std::string_view text, side from, const parameters& p);
value text_list(budget& cost, const std::vector<std::string_view>& parts);
std::size_t find_last_text(budget& cost, std::string_view text, std::string_view wanted);
/// At most `count` replacements; all if negative.
std::string replace_text(budget& cost, std::string_view text, std::string_view old, std::string_view by, integer count);

}  // namespace troupe::detail::jinja
