#include "actors/http/json_text.hpp"

#include "base/json_escape.hpp"
#include "base/utf8.hpp"

namespace troupe {

std::string json_text(std::string_view text) {
  std::string quoted = "\"";
  quoted.reserve(text.size() + 2);
  const auto add_valid = [&](std::string_view valid) {
    for (const char c : valid) {
      const auto character = static_cast<unsigned char>(c);
      if (needs_json_escape(character))
        quoted += json_escape(character);
      else
        quoted += c;
    }
  };
  const auto replace_each = [&](std::string_view invalid) {
    for (std::size_t i = 0; i < invalid.size(); ++i) quoted += "\xef\xbf\xbd";
  };
  for_each_stretch(text, add_valid, replace_each);
  return quoted += '"';
}

std::string json_text_or_null(std::string_view text) {
  return text.empty() ? "null" : json_text(text);
}

}  // namespace troupe
