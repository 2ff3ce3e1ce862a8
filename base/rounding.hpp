// Without standard headers that have inline code: kernel sources read this (model/ops/kernels.hpp).
#pragma once
#include <type_traits>

namespace troupe {

/// Pieces that hold n, the last perhaps not full.
template <class Number>
constexpr Number ceil_div(Number n, std::type_identity_t<Number> piece) {
  return (n + piece - 1) / piece;
}
/// Whole units that hold n.
template <class Number>
constexpr Number rounded_up(Number n, std::type_identity_t<Number> unit) {
  return ceil_div(n, unit) * unit;
}

}  // namespace troupe
