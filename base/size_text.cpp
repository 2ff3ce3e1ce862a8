#include "base/size_text.hpp"

#include <array>
#include <cstddef>

#include <fmt/format.h>

namespace troupe {

std::string size_text(std::uint64_t bytes) {
  constexpr std::array<const char*, 5> units{"bytes", "KiB", "MiB", "GiB", "TiB"};
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (; value >= 1000 && unit + 1 < units.size(); ++unit) value /= 1024;
  return unit == 0 ? fmt::format("{} bytes", bytes)
                   : fmt::format("{:.{}f} {}", value, value < 9.95 ? 2 : 1, units[unit]);
}

}  // namespace troupe
