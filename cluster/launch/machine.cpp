#include "cluster/launch/machine.hpp"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <fstream>

#include <fmt/format.h>

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
  addrinfo wanted{}, *found = nullptr;
  wanted.ai_flags = AI_PASSIVE;
  wanted.ai_socktype = SOCK_STREAM;
  const std::string host = place.host == "*" ? "0.0.0.0" : place.host;
  if (::getaddrinfo(host.c_str(), std::to_string(place.port).c_str(), &wanted, &found) != 0) return false;
  const file_descriptor socket(::socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int yes = 1;  // as those who will listen there: connections of before that linger do not matter
  ::setsockopt(socket.number(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  const bool taken = ::bind(socket.number(), found->ai_addr, found->ai_addrlen) != 0 && errno == EADDRINUSE;
  ::freeaddrinfo(found);
  return taken;
}

std::size_t raise_open_files() {
  constexpr rlim_t plenty = 1 << 16;
  rlimit limit{1024, 1024};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  rlimit raised = limit;
  raised.rlim_cur = std::max(limit.rlim_cur, std::min(limit.rlim_max, plenty));
  return ::setrlimit(RLIMIT_NOFILE, &raised) == 0 ? raised.rlim_cur : limit.rlim_cur;
}

}  // namespace troupe
