#include "model/tokenizer/byte_alphabet.hpp"

#include <array>

#include "base/utf8.hpp"
#include "model/tokenizer/normalizer.hpp"

namespace troupe::detail {
namespace {

constexpr char32_t first_stand_in = 0x100;

bool is_printable(int byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || (byte >= 0xAE && byte <= 0xFF);
}

/// Printable bytes are their own letters; the others take the characters from U+0100 on, in order.
struct alphabet {
  std::array<char32_t, 256> letters{};
  std::array<int, 512> bytes{};

  alphabet() {
    bytes.fill(-1);
    auto stand_in = first_stand_in;
    for (int byte = 0; byte < 256; ++byte) {
      letters[byte] = is_printable(byte) ? static_cast<char32_t>(byte) : stand_in++;
      bytes[letters[byte]] = byte;
    }
  }
};

const alphabet& the_alphabet() {
  static const alphabet built;
  return built;
}

}  // namespace

char32_t letter_of(std::uint8_t byte) {
  return the_alphabet().letters[byte];
}

std::optional<std::string> bytes_of_spelling(std::string_view spelling) {
  std::string out;
  for (std::size_t at = 0; at < spelling.size();) {
    const auto letter = next_code_point(spelling, at);
    const int byte = letter.valid && letter.value < 512 ? the_alphabet().bytes[letter.value] : -1;
    if (byte < 0) return std::nullopt;
    out += static_cast<char>(byte);
    at += letter.length;
  }
  return out;
}

std::optional<std::uint8_t> fallback_byte(std::string_view token) {
  if (token.size() != 6 || !token.starts_with("<0x") || token.back() != '>') return std::nullopt;
  static constexpr std::string_view digits = "0123456789ABCDEF";
  const auto high = digits.find(token[3]);
  const auto low = digits.find(token[4]);
  if (high == std::string_view::npos || low == std::string_view::npos) return std::nullopt;
  return static_cast<std::uint8_t>(high * 16 + low);
}

std::string sentencepiece_bytes(std::string_view token, bool is_byte) {
  if (is_byte)
    if (const auto byte = fallback_byte(token)) return {static_cast<char>(*byte)};
  return replace_all(token, visible_space, " ");
}

}  // namespace troupe::detail
