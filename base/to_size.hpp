#pragma once
#include <concepts>
#include <cstddef>
#include <type_traits>

namespace troupe {

/// A number, or a place in an enumeration, as containers want it. Our own sums are of signed integers.
template <class Number>
requires std::integral<Number> || std::is_enum_v<Number>
constexpr std::size_t to_size(Number n) {
  return static_cast<std::size_t>(n);
}

}  // namespace troupe
