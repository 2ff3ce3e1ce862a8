#pragma once
#include <string>
#include <string_view>

namespace troupe::detail::jinja {

/// What the escapes of a Python string literal stand for. On failure sets `error`.
std::string unescape(std::string_view literal, std::string& error);

}  // namespace troupe::detail::jinja
