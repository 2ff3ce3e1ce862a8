#pragma once
#include <charconv>
#include <concepts>
#include <optional>
#include <string_view>

namespace troupe {
namespace detail {

template <class Number, class... Base>
std::optional<Number> read_number(std::string_view text, Base... base) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base...);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace detail

/// All of a text as a decimal number, as from_chars reads it; nothing where it is none, or too large for the type.
template <class Number>
std::optional<Number> number_in(std::string_view text) {
  return detail::read_number<Number>(text);
}

/// The same of a number with another base.
template <std::integral Number>
std::optional<Number> number_in(std::string_view text, int base) {
  return detail::read_number<Number>(text, base);
}

}  // namespace troupe
