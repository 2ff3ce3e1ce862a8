#include "actors/http/json_text.hpp"

#include "base/json_escape.hpp"
#include "base/utf8.hpp"

namespace troupe {

std::string json_text(std::string_view text) {
  std::string quoted = "\"";
  quoted.reserve(text.size() + 2);
  for (std::size_t at = 0; at < text.size();) {
    const std::string_view valid = valid_stretch(text, at);
    for (const char c : valid) {
      const auto character = static_cast<unsigned char>(c);
      if (needs_json_escape(character))
        quoted += json_escape(character);
      else
        quoted += c;
    }
    at += valid.size();
    if (at == text.size()) break;
    quoted += "\xef\xbf\xbd";
    ++at;
  }
  return quoted += '"';
}

std::string json_text_or_null(std::string_view text) {
  return text.empty() ? "null" : json_text(text);
}

}  // namespace troupe
