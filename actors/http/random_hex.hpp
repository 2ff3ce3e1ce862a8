#pragma once
#include <cstdint>
#include <random>
#include <string>

#include <fmt/format.h>

namespace troupe {

inline std::uint64_t random_number() {
  static thread_local std::mt19937_64 random{std::random_device()()};
  return random();
}

/// For ids that nobody else has.
inline std::string random_hex(std::size_t digits) {
  std::string text;
  while (text.size() < digits) text += fmt::format("{:016x}", random_number());
  return text.substr(0, digits);
}

}  // namespace troupe
