#include "cluster/launch/machine.hpp"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <unistd.h>

#include <array>
#include <fstream>

#include <fmt/format.h>

#include "cluster/config/config_address.hpp"

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

}  // namespace troupe
