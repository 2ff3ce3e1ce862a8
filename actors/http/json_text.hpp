#pragma once
#include <string>
#include <string_view>

namespace troupe {

/// `text` as a JSON string; bytes that are no UTF-8 become U+FFFD.
std::string json_text(std::string_view text);
/// The same; null for an empty text.
std::string json_text_or_null(std::string_view text);

}  // namespace troupe
