#pragma once
#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace troupe {

/// A number that names one kind of thing: ids of different kinds neither mix nor convert. `Tag` is any type, never
/// defined: `using block_id = strong_id<struct block_tag, std::int32_t>;`
template <class Tag, class Value = std::uint64_t>
struct strong_id {
  Value value{};

  constexpr strong_id() = default;
  constexpr explicit strong_id(Value number) : value(number) {}
  friend constexpr auto operator<=>(const strong_id&, const strong_id&) = default;
};

}  // namespace troupe

template <class Tag, class Value>
struct std::hash<troupe::strong_id<Tag, Value>> {
  std::size_t operator()(const troupe::strong_id<Tag, Value>& id) const noexcept {
    return std::hash<Value>()(id.value);
  }
};
