#pragma once
#include <string>
#include <string_view>

#include "model/chat/value.hpp"

namespace troupe::detail::jinja {

/// What the escapes of a Python string literal stand for. On failure sets `error`.
std::string unescape(std::string_view literal, std::string& error);

/// What a digit stands for in bases up to 36; 99 for other characters.
int digit_value(char c);
/// 16, 8 or 2 for digits that begin with 0x, 0o or 0b, else 10.
int prefixed_base(std::string_view digits);
/// Makes `number` what it is with one digit more; false where that has more than 127 bits.
bool append_digit(integer& number, int digit, int base);

}  // namespace troupe::detail::jinja
