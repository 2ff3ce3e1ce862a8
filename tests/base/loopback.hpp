#pragma once
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>

#include "base/file_descriptor.hpp"

namespace troupe::test {

/// 127.0.0.`host` at this port.
inline sockaddr_in loopback(int port, std::uint32_t host = 1) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK - 1 + host);
  return address;
}

/// A socket that has said nothing yet; none if nobody listens there.
inline file_descriptor connected_to(int port) {
  const sockaddr_in to = loopback(port);
  file_descriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const bool is_connected = ::connect(socket.number(), reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0;
  return is_connected ? std::move(socket) : file_descriptor();
}

}  // namespace troupe::test
