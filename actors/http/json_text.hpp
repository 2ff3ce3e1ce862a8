#pragma once
#include <string>
#include <string_view>

namespace troupe {

/// `text` as a JSON string; each byte that is no UTF-8 becomes U+FFFD.
std::string json_text(std::string_view text);
/// The same; null for an empty text.
std::string json_text_or_null(std::string_view text);

}  // namespace troupe
