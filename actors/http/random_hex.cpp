#include "actors/http/random_hex.hpp"

#include <random>

#include <fmt/format.h>

namespace troupe {

std::string random_hex(int digits) {
  static thread_local std::mt19937_64 random{std::random_device()()};
  std::string text;
  while (static_cast<int>(text.size()) < digits) text += fmt::format("{:016x}", random());
  return text.substr(0, static_cast<std::size_t>(digits));
}

}  // namespace troupe
