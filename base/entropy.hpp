#pragma once
#include <cerrno>
#include <cstdint>
#include <string>
#include <system_error>

#include <fmt/format.h>
#include <sys/random.h>

namespace troupe {

/// Random bits that nothing decides (those that a seed decides are in random.hpp). From the kernel: to make a
/// std::random_device costs a dozen microseconds where the processor is virtual.
inline std::uint64_t entropy() {
  std::uint64_t number = 0;
  while (::getrandom(&number, sizeof number, 0) < 0)  // so few bytes come whole or not at all
    if (errno != EINTR) throw std::system_error(errno, std::generic_category(), "the system gives no random numbers");
  return number;
}

/// For ids that nobody else has.
inline std::string random_hex(std::size_t digits) {
  std::string text;
  while (text.size() < digits) text += fmt::format("{:016x}", entropy());
  return text.substr(0, digits);
}

}  // namespace troupe
