#include "base/utf8.hpp"

#include <cstdint>

namespace troupe {
namespace {

std::uint8_t byte_at(std::string_view text, std::size_t at) {
  return static_cast<std::uint8_t>(text[at]);
}

/// What a lead byte promises: how many bytes, and which second bytes keep out overlong forms, surrogates and values
/// past U+10FFFF.
struct lead {
  std::size_t length;
  std::uint8_t second_from;
  std::uint8_t second_to;
};

lead read_lead(std::uint8_t byte) {
  if (byte < 0xC2) return {0, 0, 0};
  if (byte < 0xE0) return {2, 0x80, 0xBF};
  if (byte < 0xF0)
    return {3, static_cast<std::uint8_t>(byte == 0xE0 ? 0xA0 : 0x80),
            static_cast<std::uint8_t>(byte == 0xED ? 0x9F : 0xBF)};
  if (byte < 0xF5)
    return {4, static_cast<std::uint8_t>(byte == 0xF0 ? 0x90 : 0x80),
            static_cast<std::uint8_t>(byte == 0xF4 ? 0x8F : 0xBF)};
  return {0, 0, 0};
}

code_point read_sequence(std::string_view text, std::size_t at, lead promised) {
  char32_t value = byte_at(text, at) & (0x7Fu >> promised.length);
  for (std::size_t i = 1; i < promised.length; ++i) {
    if (at + i == text.size()) return {.length = i, .cut_off = true};
    const auto byte = byte_at(text, at + i);
    const bool fits = i == 1 ? byte >= promised.second_from && byte <= promised.second_to : (byte & 0xC0u) == 0x80u;
    if (!fits) return {.length = i};
    value = (value << 6) | (byte & 0x3Fu);
  }
  return {.value = value, .length = promised.length, .valid = true};
}

}  // namespace

code_point next_code_point(std::string_view text, std::size_t at) {
  const auto first = byte_at(text, at);
  if (first < 0x80) return {.value = first, .valid = true};
  const auto promised = read_lead(first);
  if (promised.length == 0) return {};
  return read_sequence(text, at, promised);
}

void append_utf8(std::string& text, char32_t value) {
  const auto tail = [&](int shift) { text += static_cast<char>(0x80u | ((value >> shift) & 0x3Fu)); };
  if (value < 0x80) {
    text += static_cast<char>(value);
  } else if (value < 0x800) {
    text += static_cast<char>(0xC0u | (value >> 6));
    tail(0);
  } else if (value < 0x10000) {
    text += static_cast<char>(0xE0u | (value >> 12));
    tail(6);
    tail(0);
  } else {
    text += static_cast<char>(0xF0u | (value >> 18));
    tail(12);
    tail(6);
    tail(0);
  }
}

std::size_t last_code_point(std::string_view text) {
  auto at = text.size() - 1;
  while (at > 0 && text.size() - at < 4 && (byte_at(text, at) & 0xC0u) == 0x80u) --at;
  const auto last = next_code_point(text, at);
  return last.valid && last.length == text.size() - at ? at : text.size() - 1;
}

std::size_t bytes_of_whole_characters(std::string_view text) {
  std::size_t at = text.size();
  while (at > 0 && text.size() - at < 3 && !begins_character(text[at - 1])) --at;
  return at > 0 && next_code_point(text, at - 1).cut_off ? at - 1 : text.size();
}

bool is_utf8(std::string_view text) {
  return valid_stretch(text, 0).size() == text.size();
}

std::string_view valid_stretch(std::string_view text, std::size_t at) {
  auto end = at;
  while (end < text.size()) {
    const auto point = next_code_point(text, end);
    if (!point.valid) break;
    end += point.length;
  }
  return text.substr(at, end - at);
}

std::string_view invalid_stretch(std::string_view text, std::size_t at) {
  auto end = at;
  while (end < text.size()) {
    const auto point = next_code_point(text, end);
    if (point.valid) break;
    end += point.length;
  }
  return text.substr(at, end - at);
}

std::string without_controls(std::string_view text, char in_place) {
  std::string shown;
  for (std::size_t at = 0; at < text.size();) {
    const code_point next = next_code_point(text, at);
    const bool is_control = next.value < 0x20 || (next.value >= 0x7f && next.value < 0xa0);
    if (!next.valid)
      shown += '?';
    else if (is_control)
      shown += in_place;
    else
      shown += text.substr(at, next.length);
    at += next.length;
  }
  return shown;
}

bool is_white_space(char32_t value) {
  if (value < 0x80) return value == ' ' || (value >= '\t' && value <= '\r');
  return value == 0x85 || value == 0xA0 || value == 0x1680 || (value >= 0x2000 && value <= 0x200A) || value == 0x2028 ||
         value == 0x2029 || value == 0x202F || value == 0x205F || value == 0x3000;
}

}  // namespace troupe
