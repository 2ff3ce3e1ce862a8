#pragma once
#include <string>
#include <string_view>

namespace troupe {

/// Appends `text` as a JSON string; what is no UTF-8 becomes U+FFFD.
void append_quoted(std::string& to, std::string_view text);
std::string json_text(std::string_view text);

}  // namespace troupe
