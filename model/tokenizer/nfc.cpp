#include "model/tokenizer/nfc.hpp"

#include <algorithm>
#include <bitset>
#include <cstdint>
#include <iterator>
#include <vector>

#include "base/utf8.hpp"

namespace troupe::detail {
namespace {

struct class_range {
  char32_t first;
  char32_t last;
  std::uint8_t combining;
};
struct decomposition {
  char32_t whole;
  char32_t first;
  char32_t second;  ///< 0: the character is another way to write `first`
  bool composes;
};

#include "model/tokenizer/unicode_tables.inc"

// Hangul syllables are composed by arithmetic (The Unicode Standard, 3.12).
constexpr char32_t syllable_base = 0xAC00, lead_base = 0x1100, vowel_base = 0x1161, tail_base = 0x11A7;
constexpr char32_t lead_count = 19, vowel_count = 21, tail_count = 28;
constexpr char32_t syllable_count = lead_count * vowel_count * tail_count;

bool in_block(char32_t value, char32_t base, char32_t count) {
  return value >= base && value < base + count;
}

std::uint8_t combining_class(char32_t value) {
  if (value < class_ranges[0].first) return 0;
  const auto after = std::upper_bound(std::begin(class_ranges), std::end(class_ranges), value,
                                      [](char32_t sought, const class_range& range) { return sought < range.first; });
  const auto& range = *std::prev(after);
  return value <= range.last ? range.combining : 0;
}

const decomposition* find_decomposition(char32_t value) {
  const auto found = std::lower_bound(std::begin(decompositions), std::end(decompositions), value,
                                      [](const decomposition& row, char32_t sought) { return row.whole < sought; });
  return found != std::end(decompositions) && found->whole == value ? found : nullptr;
}

std::vector<decomposition> make_compositions() {
  std::vector<decomposition> rows;
  std::copy_if(std::begin(decompositions), std::end(decompositions), std::back_inserter(rows),
               [](const decomposition& row) { return row.composes; });
  std::sort(rows.begin(), rows.end(), [](const decomposition& a, const decomposition& b) {
    return a.first != b.first ? a.first < b.first : a.second < b.second;
  });
  return rows;
}

/// Characters that form C may change, alone or beside others.
constexpr char32_t last_listed = 0x30000;
using code_point_set = std::bitset<last_listed>;

void add_range(code_point_set& set, char32_t first, char32_t last) {
  for (auto value = first; value <= last && value < last_listed; ++value) set.set(value);
}

code_point_set make_changeable() {
  code_point_set set;
  for (const auto& range : class_ranges) add_range(set, range.first, range.last);
  for (const auto& row : decompositions) {
    if (!row.composes)
      add_range(set, row.whole, row.whole);
    else
      add_range(set, row.second, row.second);
  }
  add_range(set, vowel_base, vowel_base + vowel_count - 1);
  add_range(set, tail_base + 1, tail_base + tail_count - 1);
  return set;
}

char32_t compose_hangul(char32_t first, char32_t second) {
  if (in_block(first, lead_base, lead_count) && in_block(second, vowel_base, vowel_count))
    return syllable_base + ((first - lead_base) * vowel_count + (second - vowel_base)) * tail_count;
  const bool open = in_block(first, syllable_base, syllable_count) && (first - syllable_base) % tail_count == 0;
  if (open && in_block(second, tail_base + 1, tail_count - 1)) return first + (second - tail_base);
  return 0;
}

/// The character that the two make, or 0.
char32_t compose(char32_t first, char32_t second) {
  if (const auto hangul = compose_hangul(first, second)) return hangul;
  static const auto rows = make_compositions();
  const auto found = std::lower_bound(rows.begin(), rows.end(), std::pair(first, second),
                                      [](const decomposition& row, const std::pair<char32_t, char32_t>& sought) {
                                        return std::pair(row.first, row.second) < sought;
                                      });
  return found != rows.end() && found->first == first && found->second == second ? found->whole : 0;
}

struct mark {
  char32_t value;
  std::uint8_t combining;
};
using mark_list = std::vector<mark>;

void decompose_hangul(char32_t value, mark_list& out) {
  const auto index = value - syllable_base;
  out.push_back({lead_base + index / (vowel_count * tail_count), 0});
  out.push_back({vowel_base + index % (vowel_count * tail_count) / tail_count, 0});
  if (const auto tail = index % tail_count) out.push_back({tail_base + tail, 0});
}

void decompose(char32_t value, mark_list& out) {
  if (in_block(value, syllable_base, syllable_count)) return decompose_hangul(value, out);
  // Only the first half of a mapping is ever mapped on: the halves left over come out in reverse.
  char32_t later[8];
  int count = 0;
  while (const auto* row = find_decomposition(value)) {
    if (row->second) later[count++] = row->second;
    value = row->first;
  }
  out.push_back({value, combining_class(value)});
  while (count > 0) {
    --count;
    out.push_back({later[count], combining_class(later[count])});
  }
}

void order_marks(mark_list& text) {
  const auto is_starter = [](const mark& m) { return m.combining == 0; };
  for (auto at = text.begin(); at != text.end();) {
    const auto first = std::find_if_not(at, text.end(), is_starter);
    at = std::find_if(first, text.end(), is_starter);
    std::stable_sort(first, at, [](const mark& a, const mark& b) { return a.combining < b.combining; });
  }
}

/// A mark joins the last starter unless a mark of its own class or a higher one, or a starter, stands between.
void compose_all(mark_list& text) {
  std::size_t kept = 0;
  std::size_t starter = text.size();
  for (const auto next : text) {
    const bool touches =
        starter < kept &&
        (starter + 1 == kept || (text[kept - 1].combining != 0 && text[kept - 1].combining < next.combining));
    const auto whole = touches ? compose(text[starter].value, next.value) : 0;
    if (whole) {
      text[starter].value = whole;
      continue;
    }
    if (next.combining == 0) starter = kept;
    text[kept++] = next;
  }
  text.resize(kept);
}

void append_nfc(std::string_view valid, std::string& out) {
  mark_list text;
  text.reserve(valid.size());
  for (std::size_t at = 0; at < valid.size();) {
    const auto point = next_code_point(valid, at);
    decompose(point.value, text);
    at += point.length;
  }
  order_marks(text);
  compose_all(text);
  for (const auto& each : text) append_utf8(out, each.value);
}

}  // namespace

bool may_need_nfc(std::string_view text) {
  static const auto changeable = make_changeable();
  for (std::size_t at = 0; at < text.size();) {
    if (static_cast<std::uint8_t>(text[at]) < 0x80) {
      ++at;
      continue;
    }
    const auto point = next_code_point(text, at);
    if (point.valid && point.value < last_listed && changeable[point.value]) return true;
    at += point.length;
  }
  return false;
}

std::string to_nfc(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  const auto append_valid = [&](std::string_view valid) {
    if (may_need_nfc(valid))
      append_nfc(valid, out);
    else
      out += valid;
  };
  for_each_stretch(text, append_valid, [&](std::string_view invalid) { out += invalid; });
  return out;
}

}  // namespace troupe::detail
