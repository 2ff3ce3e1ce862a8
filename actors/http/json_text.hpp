#pragma once
#include <string>
#include <string_view>

namespace troupe {

/// Appends `text` as a JSON string; bytes that are no UTF-8 become U+FFFD.
void append_quoted(std::string& to, std::string_view text);
std::string json_text(std::string_view text);

}  // namespace troupe
