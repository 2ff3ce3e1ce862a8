#pragma once
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>

namespace troupe::detail {

struct text_hash {
  using is_transparent = void;
  std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
};

/// A hash map by text that is asked without making a string of the key.
template <class Value>
using text_map = std::unordered_map<std::string, Value, text_hash, std::equal_to<>>;

}  // namespace troupe::detail
