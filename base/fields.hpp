#pragma once
#include <tuple>

namespace troupe {

/// A struct that lists its fields once, in their order on the wire:
///   struct point {
///     int x = 0, y = 0;
///     template <class Self>
///     static auto fields(Self& self) {
///       return std::tie(self.x, self.y);
///     }
///   };
template <class T>
concept described = requires(T& x) {
  T::fields(x);
};

}  // namespace troupe
