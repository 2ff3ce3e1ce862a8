#pragma once
#include <cstddef>
#include <cstdint>

namespace troupe {

inline std::size_t to_size(std::int64_t n) {
  return static_cast<std::size_t>(n);
}

}  // namespace troupe
