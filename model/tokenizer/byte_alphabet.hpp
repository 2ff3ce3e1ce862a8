#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace troupe::detail {

/// GPT-2 writes each byte as one printable character.
char32_t letter_of(std::uint8_t byte);
/// The bytes that `spelling` stands for, or nothing where a character is not in the alphabet.
std::optional<std::string> bytes_of_spelling(std::string_view spelling);

/// The byte that SentencePiece's "<0x0A>" stands for.
std::optional<std::uint8_t> fallback_byte(std::string_view token);
/// How SentencePiece writes a space.
inline constexpr std::string_view visible_space = "\u2581";
/// What a token of SentencePiece stands for.
std::string sentencepiece_bytes(std::string_view token, bool is_byte);

}  // namespace troupe::detail
