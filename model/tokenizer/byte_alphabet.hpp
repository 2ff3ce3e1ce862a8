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

}  // namespace troupe::detail
