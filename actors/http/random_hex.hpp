#pragma once
#include <random>
#include <string>

#include <fmt/format.h>

namespace troupe {

/// For ids that nobody else has.
inline std::string random_hex(std::size_t digits) {
  static thread_local std::mt19937_64 random{std::random_device()()};
  std::string text;
  while (text.size() < digits) text += fmt::format("{:016x}", random());
  return text.substr(0, digits);
}

}  // namespace troupe
