#include <algorithm>
#include <array>
#include <bitset>
#include <iterator>
#include <string>

#include "base/ascii.hpp"
#include "base/error.hpp"
#include "base/utf8.hpp"
#include "model/tokenizer/regex.hpp"

namespace troupe::detail {
namespace {

// What Oniguruma's \s and \w stand for; PCRE2's differ in a few characters (U+180E; marks, letter numbers).
constexpr std::string_view white_space =
    R"(\x{9}-\x{d}\x{20}\x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000})";
constexpr std::string_view word =
    R"(\p{L}\p{M}\p{Nd}\p{Nl}\p{Pc}\x{24b6}-\x{24e9}\x{1f130}-\x{1f149}\x{1f150}-\x{1f169}\x{1f170}-\x{1f189})";
// Oniguruma's \w has these outside of sets alone.
constexpr std::string_view lone_word = R"(\x{b2}\x{b3}\x{b9}\x{bc}-\x{be})";
// Escapes that mean the same in both, beside escaped punctuation.
constexpr std::string_view shared_escapes = "dDpPrntfvaeAzZ";

struct later_range {
  char32_t first, last;
  std::string_view category;
};

#include "model/tokenizer/later_characters.inc"

/// Those of a category, for a set. L stands for all of Lu, Ll and so on.
std::string later_members(std::string_view category) {
  const auto has = [&](std::string_view part) {
    return category == "L&" ? part == "Lu" || part == "Ll" : part.starts_with(category);
  };
  std::string members;
  for (const later_range& range : later_ranges) {
    if (!has(range.category)) continue;
    append_utf8(members, range.first);
    members += '-';
    append_utf8(members, range.last);
  }
  return members;
}

bool is_later(char32_t value) {
  const auto* const found = std::ranges::lower_bound(later_ranges, value, {}, &later_range::last);
  return found != std::end(later_ranges) && value >= found->first;
}

/// The bytes that later characters begin with.
std::bitset<256> later_bytes() {
  std::bitset<256> bytes;
  for (const later_range& range : later_ranges) {
    std::string text;
    append_utf8(text, range.first);
    bytes.set(static_cast<unsigned char>(text[0]));
  }
  return bytes;
}

bool is_hex(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

class translator {
 public:
  translator(std::string_view pattern, const std::string& where, bool with_later)
      : pattern_(pattern), where_(where), with_later_(with_later) {}

  std::string run() {
    while (at_ < pattern_.size()) {
      if (pattern_[at_] == '\\')
        escape();
      else if (in_class_)
        class_character();
      else
        character();
    }
    return std::move(out_);
  }

 private:
  void copy(std::size_t count) {
    out_ += pattern_.substr(at_, count);
    at_ += count;
  }

  void character() {
    if (pattern_[at_] == '[') return open_class();
    if (pattern_.substr(at_, 2) == "(*") refuse_part(2);
    if (pattern_.substr(at_, 2) == "{,") refuse_part(2);                  // up to so many times in Oniguruma alone
    if (pattern_.substr(at_, 2) == "}+") refuse_part(2);                  // possessive in PCRE2 alone
    if (pattern_.substr(at_, 2) == "}?" && ends_count()) refuse_part(2);  // lazy in PCRE2, in Oniguruma optional
    if (pattern_.substr(at_, 2) == "(?") return group();
    copy(1);
  }

  /// The brace here closes one number: "{3}".
  bool ends_count() const {
    const auto number = pattern_.substr(0, at_).find_last_not_of("0123456789");
    return number != std::string_view::npos && number + 1 < at_ && pattern_[number] == '{';
  }

  void group() {
    static constexpr std::array<std::string_view, 7> known = {"(?:", "(?=", "(?!", "(?<=", "(?<!", "(?>", "(?i:"};
    // Further in, Oniguruma lets the option swallow the alternatives behind it; PCRE2 does not.
    if (at_ == 0 && pattern_.starts_with("(?i)")) return copy(4);
    for (const auto opening : known)
      if (pattern_.substr(at_, opening.size()) == opening) return copy(opening.size());
    refuse_part(4);
  }

  void open_class() {
    in_class_ = true;
    copy(1);
    if (peek('^')) copy(1);
    class_start_ = at_;
  }

  void class_character() {
    // Nested sets and intersections are Oniguruma's own.
    if (pattern_[at_] == '[' || pattern_.substr(at_, 2) == "&&") refuse_part(2);
    if (pattern_[at_] == ']' && at_ != class_start_) in_class_ = false;
    copy(1);
  }

  void escape() {
    if (at_ + 1 == pattern_.size()) refuse("{}: the pattern ends in a backslash", where_);
    const char c = pattern_[at_ + 1];
    if (c == 's') return set(white_space);
    if (c == 'w') return set(word_members() + std::string(in_class_ ? "" : lone_word));
    if (c == 'S' && !in_class_) return negated_set(white_space);
    if (c == 'W' && !in_class_) return negated_set(word_members() + std::string(lone_word));
    if (c == 'p' || c == 'P') return property();
    if (pattern_.substr(at_, 3) == "\\x{") return copy(end_of_braces() - at_);
    if (c == 'x') return hexadecimal(2);
    if (c == 'u') return hexadecimal(4);
    if (c == '0' || (is_letter_or_digit(c) && shared_escapes.find(c) == std::string_view::npos)) refuse_part(2);
    copy(2);
  }

  std::string later(std::string_view category) const { return with_later_ ? later_members(category) : ""; }
  std::string word_members() const { return std::string(word) + later("L") + later("M") + later("Nd"); }

  void set(std::string_view members) {
    out_ += in_class_ ? std::string(members) : fmt::format("[{}]", members);
    at_ += 2;
  }
  void negated_set(std::string_view members) {
    out_ += fmt::format("[^{}]", members);
    at_ += 2;
  }

  /// \p{Name}, \P{Name} or \p{^Name}. A script's name stands for its own characters, in PCRE2 for those that it shares
  /// with others, too, such as punctuation. Inside a set, what is not of a category stays as PCRE2 knows it.
  void property() {
    const auto end = end_of_braces();
    const bool is_inverted = pattern_[at_ + 3] == '^';
    const bool is_negated = (pattern_[at_ + 1] == 'P') != is_inverted;
    const auto first = at_ + (is_inverted ? 4 : 3);
    const auto name = pattern_.substr(first, end - 1 - first);
    const std::string members = later(name);
    const bool opens_set = !in_class_ && !members.empty();
    if (opens_set) out_ += is_negated ? "[^" : "[";
    out_ += opens_set || !is_negated ? "\\p{" : "\\P{";
    if (is_script(name)) out_ += "sc:";
    out_ += fmt::format("{}}}", name);
    if (opens_set || !is_negated) out_ += members;
    if (opens_set) out_ += ']';
    at_ = end;
  }

  /// Behind the brace that closes the one two bytes on.
  std::size_t end_of_braces() const {
    const auto end = pattern_.find('}', at_);
    if (at_ + 2 >= pattern_.size() || pattern_[at_ + 2] != '{' || end == std::string_view::npos) refuse_part(2);
    return end + 1;
  }

  /// \xHH and \uHHHH.
  void hexadecimal(std::size_t digits) {
    const auto first = at_ + 2;
    for (auto i = first; i < first + digits; ++i)
      if (i >= pattern_.size() || !is_hex(pattern_[i])) refuse_part(2 + digits);
    out_ += "\\x{" + std::string(pattern_.substr(first, digits)) + "}";
    at_ = first + digits;
  }

  bool peek(char c) const { return at_ < pattern_.size() && pattern_[at_] == c; }
  [[noreturn]] void refuse_part(std::size_t length) const {
    refuse("{}: \"{}\" in the pattern is not supported", where_, pattern_.substr(at_, length));
  }

  std::string_view pattern_;
  const std::string& where_;
  bool with_later_;
  std::size_t at_ = 0;
  std::size_t class_start_ = 0;
  bool in_class_ = false;
  std::string out_;
};

}  // namespace

bool has_later_characters(std::string_view text) {
  static const std::bitset<256> first_bytes = later_bytes();
  for (std::size_t at = 0; at < text.size(); ++at)
    if (first_bytes[static_cast<unsigned char>(text[at])] && is_later(next_code_point(text, at).value)) return true;
  return false;
}

std::string to_pcre2(std::string_view pattern, const std::string& where, bool with_later) {
  return translator(pattern, where, with_later).run();
}

regex regex_of(std::string_view pattern, const std::string& where) {
  return regex(to_pcre2(pattern, where, false), where, to_pcre2(pattern, where, true));
}

std::string escape_pattern(std::string_view literal) {
  std::string out;
  for (const char c : literal) {
    if (static_cast<unsigned char>(c) < 0x80 && !is_letter_or_digit(c)) out += '\\';
    out += c;
  }
  return out;
}

}  // namespace troupe::detail
