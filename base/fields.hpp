#pragma once
#include <string_view>

namespace troupe {

/// One named field of a struct.
template <class T>
struct field_ref {
  std::string_view name;
  T& value;
};
template <class T>
constexpr field_ref<T> field(std::string_view name, T& value) {
  return {name, value};
}

/// A struct that lists its fields once, for every serializer and printer:
///   struct point {
///     int x = 0, y = 0;
///     template <class Self, class Visit>
///     static auto visit_fields(Self& self, Visit visit) { return visit(field("x", self.x), field("y", self.y)); }
///   };
template <class T>
concept described = requires(T& x) {
  T::visit_fields(x, [](auto...) {});
};

}  // namespace troupe
