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

code_point_set class_of_letter(char letter) {
  static const code_point_set digits{{'0', '9'}};
  static const code_point_set word{{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
  static const code_point_set space{{'\t', '\r'}, {' ', ' '}};
  switch (letter) {
    case 'd':
      return digits;
    case 'D':
      return digits.inverted();
    case 'w':
      return word;
    case 'W':
      return word.inverted();
    case 's':
      return space;
    default:
      return space.inverted();
  }
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
