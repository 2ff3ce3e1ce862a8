#include "base/addresses.hpp"

#include <array>
#include <cstring>
#include <memory>

#include <netdb.h>
#include <netinet/in.h>

#include "base/number_in.hpp"

namespace troupe {
namespace {

/// A socket for both kinds of addresses says ::ffff:10.0.0.7 of 10.0.0.7.
void unmap(socket_address& address) {
  sockaddr_in6 six{};
  std::memcpy(&six, &address.bytes, sizeof six);
  if (address.family() != AF_INET6 || !IN6_IS_ADDR_V4MAPPED(&six.sin6_addr)) return;
  sockaddr_in four{};
  four.sin_family = AF_INET;
  four.sin_port = six.sin6_port;
  std::memcpy(&four.sin_addr, &six.sin6_addr.s6_addr[12], sizeof four.sin_addr);
  address = {};
  std::memcpy(&address.bytes, &four, sizeof four);
  address.length = sizeof four;
}

}  // namespace

bool socket_address::is_loopback() const {
  if (family() == AF_INET) {
    const auto* four = reinterpret_cast<const sockaddr_in*>(&bytes);
    return ntohl(four->sin_addr.s_addr) >> 24 == 127;
  }
  const auto* six = reinterpret_cast<const sockaddr_in6*>(&bytes);
  return family() == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&six->sin6_addr);
}

host_port socket_address::in_numbers() const {
  std::array<char, INET6_ADDRSTRLEN + 16> host{};  // and a zone
  std::array<char, 8> port{};
  ::getnameinfo(get(), length, host.data(), host.size(), port.data(), port.size(), NI_NUMERICHOST | NI_NUMERICSERV);
  return {host.data(), number_in<int>(port.data()).value_or(0)};
}

std::vector<socket_address> addresses_of(const std::string& host, const std::string& port, int flags) {
  addrinfo wanted{}, *found = nullptr;
  wanted.ai_socktype = SOCK_STREAM;
  wanted.ai_flags = flags;
  if (::getaddrinfo(host.empty() ? nullptr : host.c_str(), port.c_str(), &wanted, &found) != 0) return {};
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owned(found, ::freeaddrinfo);
  std::vector<socket_address> addresses;
  for (const addrinfo* each = found; each != nullptr; each = each->ai_next) {
    socket_address& address = addresses.emplace_back();
    std::memcpy(&address.bytes, each->ai_addr, each->ai_addrlen);
    address.length = each->ai_addrlen;
  }
  return addresses;
}

socket_address local_address_of(int socket) {
  socket_address address;
  address.length = sizeof address.bytes;
  if (::getsockname(socket, reinterpret_cast<sockaddr*>(&address.bytes), &address.length) != 0) return {};
  unmap(address);
  return address;
}

}  // namespace troupe
