#pragma once
#include <string>
#include <string_view>

namespace troupe::detail::jinja {

/// What the escapes of a Python string literal stand for. On failure sets `error`.
std::string unescape(std::string_view literal, std::string& error);

/// What a digit stands for in bases up to 36; 99 for other characters.
int digit_value(char c);
/// 16, 8 or 2 for digits that begin with 0x, 0o or 0b, else 10.
int prefixed_base(std::string_view digits);

}  // namespace troupe::detail::jinja
