#include "base/addresses.hpp"

#include <cstring>
#include <memory>

#include <netdb.h>
#include <netinet/in.h>

namespace troupe {

bool socket_address::is_loopback() const {
  if (family() == AF_INET) {
    const auto* four = reinterpret_cast<const sockaddr_in*>(&bytes);
    return ntohl(four->sin_addr.s_addr) >> 24 == 127;
  }
  const auto* six = reinterpret_cast<const sockaddr_in6*>(&bytes);
  return family() == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&six->sin6_addr);
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

}  // namespace troupe
