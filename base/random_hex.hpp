#pragma once
#include <cstdint>
#include <random>
#include <string>

#include <fmt/format.h>

namespace troupe {

inline std::uint64_t random_number() {
  std::random_device device;
  const std::uint64_t high = device(), low = device();
  return high << 32 | low;
}

/// For ids that nobody else has.
inline std::string random_hex(std::size_t digits) {
  std::string text;
  while (text.size() < digits) text += fmt::format("{:016x}", random_number());
  return text.substr(0, digits);
}

}  // namespace troupe
