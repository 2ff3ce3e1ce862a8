#include "cluster/launch/machine.hpp"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <fstream>

#include <fmt/format.h>

#include "base/addresses.hpp"
#include "base/file_descriptor.hpp"

namespace troupe {
namespace {

std::string text_of(const sockaddr* address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (address && address->sa_family == AF_INET)
    ::inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(address)->sin_addr, text.data(), text.size());
  if (address && address->sa_family == AF_INET6)
    ::inet_ntop(AF_INET6, &reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr, text.data(), text.size());
  return text.data();
}

bool is_own_address(const std::string& host) {
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return false;
  bool found = false;
  for (const ifaddrs* each = list; each && !found; each = each->ifa_next) found = text_of(each->ifa_addr) == host;
  ::freeifaddrs(list);
  return found;
}

bool is_taken(const socket_address& address) {
  const file_descriptor socket(::socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int yes = 1;  // as those who will listen there: connections of before that linger do not matter
  ::setsockopt(socket.number(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  return ::bind(socket.number(), address.get(), address.length) != 0 && errno == EADDRINUSE;
}

}  // namespace

std::string machine_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

std::string machine_id() {
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  return fmt::format("{} {}", machine_name(), boot);
}

bool is_this_machine(const std::string& host) {
  return is_loopback_host(host) || host == machine_name() || (is_numeric_host(host) && is_own_address(host));
}

bool is_port_taken(const host_port& place) {
  const bool is_every = place.host == "*";  // of IPv4 and of IPv6
  auto addresses = addresses_of(is_every ? "" : place.host, std::to_string(place.port), AI_PASSIVE);
  if (!is_every && !addresses.empty()) addresses.resize(1);
  return std::any_of(addresses.begin(), addresses.end(), is_taken);
}

}  // namespace troupe
