#pragma once
#include <cstdint>
#include <string>

#include <fmt/format.h>
#include <sys/random.h>

namespace troupe {

/// From the kernel: to make a std::random_device costs a dozen microseconds where the processor is virtual.
inline std::uint64_t random_number() {
  std::uint64_t number = 0;
  while (::getrandom(&number, sizeof number, 0) != static_cast<ssize_t>(sizeof number)) {
  }
  return number;
}

/// For ids that nobody else has.
inline std::string random_hex(std::size_t digits) {
  std::string text;
  while (text.size() < digits) text += fmt::format("{:016x}", random_number());
  return text.substr(0, digits);
}

}  // namespace troupe
