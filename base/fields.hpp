#pragma once
#include <tuple>

namespace troupe {

/// A struct that lists its fields once, in their order on the wire, for reading and for writing:
///   struct point {
///     int x = 0, y = 0;
///     auto fields() { return std::tie(x, y); }
///   };
template <class T>
concept described = requires(T& x) {
  x.fields();
};

/// The fields of an object that stays as it is.
template <described T>
auto fields_of(const T& x) {
  return std::apply([](const auto&... fields) { return std::tie(fields...); }, const_cast<T&>(x).fields());
}

}  // namespace troupe
