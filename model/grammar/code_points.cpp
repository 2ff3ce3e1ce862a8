#include "model/grammar/code_points.hpp"

#include <algorithm>
#include <string>

#include "base/json_escape.hpp"
#include "base/utf8.hpp"

namespace troupe::detail {
namespace {

using piece = grammar_builder::piece;

constexpr char32_t first_surrogate = 0xd800, last_surrogate = 0xdfff;

/// Cuts a range into such whose characters differ in whole bytes only: each is a path of byte ranges.
void add_aligned(std::vector<grammar_builder::path>& paths, char32_t low, char32_t high) {
  // Bytes behind the first carry 6 bits each: split where the lower ones are not all 0 or all 1.
  std::string first, last;
  append_utf8(first, low);
  append_utf8(last, high);
  for (std::size_t behind = 1; behind < first.size(); ++behind) {
    const char32_t mask = (char32_t{1} << (6 * behind)) - 1;
    if ((low & ~mask) == (high & ~mask)) break;
    if ((low & mask) != 0) {
      add_aligned(paths, low, low | mask);
      return add_aligned(paths, (low | mask) + 1, high);
    }
    if ((high & mask) != mask) {
      add_aligned(paths, low, (high & ~mask) - 1);
      return add_aligned(paths, high & ~mask, high);
    }
  }
  auto& bytes = paths.emplace_back();
  for (std::size_t i = 0; i < first.size(); ++i)
    bytes.push_back({static_cast<std::uint8_t>(first[i]), static_cast<std::uint8_t>(last[i])});
}

/// Behind each come the other nine digits.
constexpr char32_t zeros_of_scripts[] = {
    0x660,   0x6f0,   0x7c0,   0x966,   0x9e6,   0xa66,   0xae6,   0xb66,   0xbe6,   0xc66,   0xce6,   0xd66,   0xde6,
    0xe50,   0xed0,   0xf20,   0x1040,  0x1090,  0x17e0,  0x1810,  0x1946,  0x19d0,  0x1a80,  0x1a90,  0x1b50,  0x1bb0,
    0x1c40,  0x1c50,  0xa620,  0xa8d0,  0xa900,  0xa9d0,  0xa9f0,  0xaa50,  0xabf0,  0xff10,  0x104a0, 0x10d30, 0x10d40,
    0x11066, 0x110f0, 0x11136, 0x111d0, 0x112f0, 0x11450, 0x114d0, 0x11650, 0x116c0, 0x116d0, 0x116da, 0x11730, 0x118e0,
    0x11950, 0x11bf0, 0x11c50, 0x11d50, 0x11da0, 0x11de0, 0x11f50, 0x16130, 0x16a60, 0x16ac0, 0x16b50, 0x1ccf0, 0x1d7ce,
    0x1d7d8, 0x1d7e2, 0x1d7ec, 0x1d7f6, 0x1e140, 0x1e2f0, 0x1e4f0, 0x1e5f1, 0x1e950, 0x1fbf0};

code_point_set digits_of_all_scripts() {
  std::vector<code_point_set::range> ranges{{'0', '9'}};
  for (const char32_t zero : zeros_of_scripts) ranges.push_back({zero, zero + 9});
  return code_point_set(std::move(ranges));
}

}  // namespace

void code_point_set::tidy() {
  std::vector<range> cut;
  for (const range& each : ranges_) {
    const char32_t high = std::min(each.high, most);
    if (each.low < first_surrogate) cut.push_back({each.low, std::min<char32_t>(high, first_surrogate - 1)});
    if (high > last_surrogate) cut.push_back({std::max<char32_t>(each.low, last_surrogate + 1), high});
  }
  std::erase_if(cut, [](const range& each) { return each.low > each.high; });
  std::sort(cut.begin(), cut.end(), [](const range& a, const range& b) { return a.low < b.low; });
  ranges_.clear();
  for (const range& each : cut) {
    if (!ranges_.empty() && each.low <= ranges_.back().high + 1)
      ranges_.back().high = std::max(ranges_.back().high, each.high);
    else
      ranges_.push_back(each);
  }
}

code_point_set code_point_set::inverted() const {
  code_point_set result;
  char32_t from = 0;
  for (const range& each : ranges_) {
    if (each.low > from) result.ranges_.push_back({from, each.low - 1});
    from = each.high + 1;
  }
  if (from <= most) result.ranges_.push_back({from, most});
  result.tidy();
  return result;
}

code_point_set code_point_set::without(const code_point_set& other) const {
  std::vector<range> rest = inverted().ranges_;
  rest.insert(rest.end(), other.ranges_.begin(), other.ranges_.end());
  return code_point_set(std::move(rest)).inverted();
}

bool code_point_set::contains(char32_t character) const {
  return std::any_of(ranges_.begin(), ranges_.end(),
                     [&](const range& each) { return each.low <= character && character <= each.high; });
}

code_point_set narrow_class(char letter) {
  if (letter == 'd') return {{'0', '9'}};
  if (letter == 's') return {{'\t', '\r'}, {' ', ' '}};
  return {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
}

code_point_set wide_class(char letter) {
  static const code_point_set digits = digits_of_all_scripts();
  if (letter == 'd') return digits;
  if (letter == 's')
    return {{'\t', '\r'},     {0x1c, ' '},      {0x85, 0x85},     {0xa0, 0xa0},     {0x1680, 0x1680}, {0x2000, 0x200a},
            {0x2028, 0x2029}, {0x202f, 0x202f}, {0x205f, 0x205f}, {0x3000, 0x3000}, {0xfeff, 0xfeff}};
  return {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}, {0x80, code_point_set::most}};
}

const code_point_set& json_escaped_characters() {
  static const code_point_set set{{0, 0x1f}, {'"', '"'}, {'\\', '\\'}};
  return set;
}

piece utf8_character(grammar_builder& to, const code_point_set& set) {
  static constexpr char32_t length_ends[] = {0x7f, 0x7ff, 0xffff, code_point_set::most};
  std::vector<grammar_builder::path> paths;
  for (auto [low, high] : set.ranges())
    for (const char32_t end : length_ends) {
      if (low > end || low > high) continue;
      add_aligned(paths, low, std::min(high, end));
      low = end + 1;
    }
  return to.one_of_paths(paths);
}

piece json_character(grammar_builder& to, const code_point_set& set) {
  std::vector<piece> parts{utf8_character(to, set.without(json_escaped_characters()))};
  std::vector<std::string> escapes;
  for (const auto& [low, high] : json_escaped_characters().ranges())
    for (char32_t each = low; each <= high; ++each)
      if (set.contains(each)) escapes.push_back(json_escape(each));
  if (!escapes.empty()) parts.push_back(to.one_of_texts(escapes));
  return to.any_of(parts);
}

}  // namespace troupe::detail
