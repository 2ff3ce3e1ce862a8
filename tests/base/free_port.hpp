#pragma once
#include <random>
#include <set>
#include <stdexcept>

#include "tests/base/loopback.hpp"

namespace troupe::test {

inline bool is_free(int port) {
  const file_descriptor made(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const sockaddr_in where = loopback(port);
  return ::bind(made.number(), reinterpret_cast<const sockaddr*>(&where), sizeof where) == 0;
}

/// A port of loopback outside the range from which the system gives out ports, so that it is still free when somebody
/// listens there later, or again. Another one each time.
inline int free_port() {
  static std::set<int> given;
  std::random_device device;
  for (int tries = 0; tries < 1000; ++tries)
    if (const int port = 20000 + static_cast<int>(device() % 12000); is_free(port) && given.insert(port).second)
      return port;
  throw std::runtime_error("no free port");
}

}  // namespace troupe::test
