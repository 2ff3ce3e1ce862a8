#pragma once
#include <charconv>
#include <optional>
#include <string_view>

namespace troupe {

/// All of a text as a decimal number, as from_chars reads it; nothing where it is none, or too large for the type.
template <class Number>
std::optional<Number> number_in(std::string_view text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace troupe
