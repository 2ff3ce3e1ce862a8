#include "model/chat/text.hpp"

#include <string.h>

#include <algorithm>
#include <array>
#include <utility>

namespace troupe::detail::jinja {
namespace {

// A run of letters whose other case lies `distance` further on; in paired runs, large and small letters alternate.
struct case_run {
  char32_t first_large, last_large;
  char32_t distance;
  bool paired;
};

constexpr std::array<case_run, 19> case_runs{{
    {0xC0, 0xD6, 32, false},   {0xD8, 0xDE, 32, false},   {0x100, 0x12E, 1, true},   {0x132, 0x136, 1, true},
    {0x139, 0x147, 1, true},   {0x14A, 0x176, 1, true},   {0x179, 0x17D, 1, true},   {0x218, 0x21E, 1, true},
    {0x386, 0x386, 38, false}, {0x388, 0x38A, 37, false}, {0x38C, 0x38C, 64, false}, {0x38E, 0x38F, 63, false},
    {0x391, 0x3A1, 32, false}, {0x3A3, 0x3AB, 32, false}, {0x400, 0x40F, 80, false}, {0x410, 0x42F, 32, false},
    {0x460, 0x480, 1, true},   {0x48A, 0x4BE, 1, true},   {0x1EA0, 0x1EFE, 1, true},
}};

template <class Mapping>
std::string map_points(std::string_view text, Mapping mapping) {
  std::string out;
  out.reserve(text.size());
  for_each_point(text, [&](const code_point& next, std::string_view bytes) {
    const char32_t mapped = next.valid ? mapping(next.value) : next.value;
    if (mapped == next.value)
      out.append(bytes);
    else
      append_utf8(out, mapped);
  });
  return out;
}

bool is_stripped(std::string_view character, const std::optional<std::string_view>& set) {
  return set ? find_text(*set, character) != set->npos : is_space(decode(character, 0).value);
}

}  // namespace

code_point decode(std::string_view text, std::size_t at) {
  const code_point next = next_code_point(text, at);
  return next.valid ? next : code_point{.value = 0xFFFD};
}

bool is_ascii(std::string_view text) {
  return std::none_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) >= 0x80; });
}

std::size_t code_points(std::string_view text) {
  if (is_ascii(text)) return text.size();
  std::size_t count = 0;
  for (std::size_t at = 0; at < text.size(); ++count) at += decode(text, at).length;
  return count;
}

std::size_t byte_offset(std::string_view text, std::size_t number) {
  std::size_t at = 0;
  for (; number > 0 && at < text.size(); --number) at += decode(text, at).length;
  return at;
}

std::vector<std::size_t> code_point_starts(std::string_view text) {
  std::vector<std::size_t> starts;
  for (std::size_t at = 0; at < text.size(); at += decode(text, at).length) starts.push_back(at);
  starts.push_back(text.size());
  return starts;
}

bool is_space(char32_t point) {
  return is_white_space(point) || (point >= 0x1C && point <= 0x1F);
}

bool is_letter(char32_t point) {
  if (point < 0x80) return (point | 0x20) >= 'a' && (point | 0x20) <= 'z';
  const bool sign = point < 0xC0 && point != 0xAA && point != 0xB5 && point != 0xBA;
  const bool punctuation = (point >= 0x2000 && point <= 0x206F) || (point >= 0x3000 && point <= 0x303F);
  const bool symbol = point == 0xD7 || point == 0xF7 || (point >= 0x20A0 && point <= 0x2BFF) || point >= 0x1F000;
  return !sign && !punctuation && !symbol && point < 0xE000;
}

bool is_printable(char32_t point) {
  if (point < 0x7F) return point >= ' ';
  const bool control = point < 0xA1 || point == 0xAD || is_space(point);
  const bool formatting = (point >= 0x200B && point <= 0x200F) || (point >= 0x202A && point <= 0x202E) ||
                          (point >= 0x2060 && point <= 0x206F) || point == 0xFEFF;
  const bool unassigned = (point >= 0xE000 && point <= 0xF8FF) || (point >= 0xFFF0 && point <= 0xFFFB) ||
                          (point & 0xFFFE) == 0xFFFE || point >= 0xE0000;
  return !control && !formatting && !unassigned;
}

std::string_view strip(std::string_view text, side from, std::optional<std::string_view> characters) {
  while (from != side::right && !text.empty()) {
    const std::size_t length = decode(text, 0).length;
    if (!is_stripped(text.substr(0, length), characters)) break;
    text.remove_prefix(length);
  }
  while (from != side::left && !text.empty()) {
    const std::size_t start = last_code_point(text);
    if (!is_stripped(text.substr(start), characters)) break;
    text = text.substr(0, start);
  }
  return text;
}

char32_t to_lower(char32_t point) {
  if (point < 0x80) return point >= 'A' && point <= 'Z' ? point + 32 : point;
  for (const case_run& run : case_runs) {
    if (point < run.first_large || point > run.last_large) continue;
    if (!run.paired || (point - run.first_large) % 2 == 0) return point + run.distance;
  }
  return point == 0x178 ? 0xFF : point;
}

char32_t to_upper(char32_t point) {
  if (point < 0x80) return point >= 'a' && point <= 'z' ? point - 32 : point;
  for (const case_run& run : case_runs) {
    const char32_t large = point - run.distance;
    if (point < run.distance || large < run.first_large || large > run.last_large) continue;
    if (!run.paired || (large - run.first_large) % 2 == 0) return large;
  }
  constexpr char32_t final_sigma = 0x3C2;
  if (point == final_sigma) return 0x3A3;
  return point == 0xFF ? 0x178 : point;
}

std::string upper(std::string_view text) {
  std::string mapped = map_points(text, to_upper);
  constexpr std::string_view sharp_s = "\u00df", in_capitals = "SS";  // of as many bytes
  for (std::size_t at = 0; (at = mapped.find(sharp_s, at)) != mapped.npos; at += in_capitals.size())
    mapped.replace(at, sharp_s.size(), in_capitals);
  return mapped;
}
std::string lower(std::string_view text) {
  return map_points(text, to_lower);
}

std::string capitalize(std::string_view text) {
  bool first = true;
  return map_points(
      text, [&first](char32_t point) { return std::exchange(first, false) ? to_upper(point) : to_lower(point); });
}

std::string title(std::string_view text) {
  bool inside = false;
  return map_points(text, [&inside](char32_t point) {
    return std::exchange(inside, is_letter(point)) ? to_lower(point) : to_upper(point);
  });
}

std::size_t find_text(std::string_view text, std::string_view wanted, std::size_t from) {
  if (from > text.size()) return text.npos;
  if (wanted.empty()) return from;
  const void* found = memmem(text.data() + from, text.size() - from, wanted.data(), wanted.size());
  return found ? static_cast<std::size_t>(static_cast<const char*>(found) - text.data()) : text.npos;
}

}  // namespace troupe::detail::jinja
