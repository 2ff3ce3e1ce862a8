#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "base/number_in.hpp"

namespace troupe {

/// As addresses are written: "%41+b" → "A+b". What is no escape stays.
inline std::string percent_decoded(std::string_view text) {
  std::string decoded;
  decoded.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    const std::string_view digits = text.substr(i + 1, 2);
    std::optional<unsigned char> byte;
    if (text[i] == '%' && digits.size() == 2) byte = number_in<unsigned char>(digits, 16);
    decoded += byte ? static_cast<char>(*byte) : text[i];
    if (byte) i += 2;
  }
  return decoded;
}

}  // namespace troupe
