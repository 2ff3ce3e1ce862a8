#pragma once
#include <string>
#include <vector>

#include <sys/socket.h>

#include "base/host_port.hpp"

namespace troupe {

/// A socket's address of any kind.
struct socket_address {
  sockaddr_storage bytes{};
  socklen_t length = 0;

  int family() const { return bytes.ss_family; }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&bytes); }
  /// Whether only this machine reaches it.
  bool is_loopback() const;
  /// Not of a socket's file.
  host_port in_numbers() const;
};

/// What a host stands for, as the machine's resolver orders it; nothing if it is not known, or cannot be looked up now.
/// An empty host: every address of this machine. `flags`: those of getaddrinfo (AI_PASSIVE for whoever listens there).
std::vector<socket_address> addresses_of(const std::string& host, const std::string& port, int flags = 0);

/// Where a socket is bound; of a connection, where this machine is for the other side. Of no kind if there is no such.
socket_address local_address_of(int socket);

}  // namespace troupe
