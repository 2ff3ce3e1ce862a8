#include "base/columns.hpp"

#include <algorithm>
#include <iterator>

#include "base/utf8.hpp"

namespace troupe {
namespace {

struct range {
  char32_t first, last;
};

/// Accents that stand behind their letter, and marks that show nothing.
constexpr range narrowest[] = {{0x300, 0x36f}, {0x200b, 0x200f}, {0x20d0, 0x20ff}};

/// Wide and fullwidth characters of Unicode, with what lies between them and is not given to anything else.
constexpr range wide[] = {
    {0x1100, 0x115f},   {0x231a, 0x231b},   {0x2329, 0x232a},   {0x23e9, 0x23ec},   {0x23f0, 0x23f0},
    {0x23f3, 0x23f3},   {0x25fd, 0x25fe},   {0x2614, 0x2615},   {0x2648, 0x2653},   {0x267f, 0x267f},
    {0x2693, 0x2693},   {0x26a1, 0x26a1},   {0x26aa, 0x26ab},   {0x26bd, 0x26be},   {0x26c4, 0x26c5},
    {0x26ce, 0x26ce},   {0x26d4, 0x26d4},   {0x26ea, 0x26ea},   {0x26f2, 0x26f3},   {0x26f5, 0x26f5},
    {0x26fa, 0x26fa},   {0x26fd, 0x26fd},   {0x2705, 0x2705},   {0x270a, 0x270b},   {0x2728, 0x2728},
    {0x274c, 0x274c},   {0x274e, 0x274e},   {0x2753, 0x2755},   {0x2757, 0x2757},   {0x2795, 0x2797},
    {0x27b0, 0x27b0},   {0x27bf, 0x27bf},   {0x2b1b, 0x2b1c},   {0x2b50, 0x2b50},   {0x2b55, 0x2b55},
    {0x2e80, 0x303e},   {0x3041, 0x4dbf},   {0x4e00, 0xa4c6},   {0xa960, 0xa97c},   {0xac00, 0xd7a3},
    {0xf900, 0xfaff},   {0xfe10, 0xfe19},   {0xfe30, 0xfe6f},   {0xff01, 0xff60},   {0xffe0, 0xffe6},
    {0x16fe0, 0x1b2ff}, {0x1f004, 0x1f004}, {0x1f0cf, 0x1f0cf}, {0x1f18e, 0x1f18e}, {0x1f191, 0x1f19a},
    {0x1f1e6, 0x1f64f}, {0x1f680, 0x1f6ff}, {0x1f7e0, 0x1f7f0}, {0x1f90c, 0x1f9ff}, {0x1fa70, 0x1faff},
    {0x20000, 0x3fffd}};

template <std::size_t Count>
bool is_in(const range (&ranges)[Count], char32_t value) {
  const auto* const behind = std::ranges::upper_bound(ranges, value, {}, &range::first);
  return behind != std::begin(ranges) && value <= std::prev(behind)->last;
}

std::size_t columns_of(const code_point& next) {
  if (!next.valid) return next.length;  // a mark in the place of each byte, at most
  if (is_in(narrowest, next.value)) return 0;
  return is_in(wide, next.value) ? 2 : 1;
}

}  // namespace

std::size_t columns_in(std::string_view text) {
  std::size_t columns = 0;
  for (std::size_t at = 0; at < text.size();) {
    const code_point next = next_code_point(text, at);
    columns += columns_of(next);
    at += next.length;
  }
  return columns;
}

std::size_t bytes_in_columns(std::string_view text, std::size_t columns) {
  std::size_t at = 0;
  while (at < text.size()) {
    const code_point next = next_code_point(text, at);
    const std::size_t taken = columns_of(next);
    if (taken > columns) break;
    columns -= taken;
    at += next.length;
  }
  return at;
}

}  // namespace troupe
