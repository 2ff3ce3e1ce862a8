#include "cluster/launch/machine.hpp"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>

#include <fmt/format.h>

#include "base/addresses.hpp"
#include "base/file_descriptor.hpp"
#include "cluster/launch/launch_process.hpp"

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
  for (const ifaddrs* each = list; each && !found; each = each->ifa_next)
    found = on_one_host(text_of(each->ifa_addr), host);
  ::freeifaddrs(list);
  return found;
}

bool stands_for_this_machine(const std::string& name) {
  const auto addresses = addresses_of(name, "0");
  return !addresses.empty() && std::all_of(addresses.begin(), addresses.end(), [](const socket_address& each) {
    return each.is_loopback() || is_own_address(text_of(each.get()));
  });
}

/// The same, asked in a process of its own: a name server that is away may not answer for minutes, and who asks cannot
/// be told to stop. Nothing if there is no answer in time.
std::optional<bool> is_found_to_be_this_machine(const std::string& name) {
  constexpr int patience_ms = 2000;
  auto [heard, told] = detail::open_pipe();
  const pid_t child = ::fork();
  if (child < 0) return {};
  if (child == 0) {
    const char found = stands_for_this_machine(name) ? 1 : 0;
    ::_exit(::write(told.number(), &found, 1) == 1 ? 0 : 1);
  }
  told.close();
  pollfd answer{heard.number(), POLLIN, 0};
  char found = 0;
  const bool is_there = ::poll(&answer, 1, patience_ms) == 1 && ::read(heard.number(), &found, 1) == 1;
  ::kill(child, SIGKILL);
  while (::waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
  return is_there ? std::optional(found == 1) : std::nullopt;
}

/// Many ask for the same name while a cluster starts, and all must get the same answer. If nobody answers for one name,
/// no others are asked for: each would take the same time.
bool is_name_of_this_machine(const std::string& name) {
  static std::map<std::string, bool> known;
  static bool is_answered = true;
  const auto [entry, is_new] = known.try_emplace(name);
  if (!is_new || !is_answered) return entry->second;
  const auto found = is_found_to_be_this_machine(name);
  is_answered = found.has_value();
  return entry->second = found.value_or(false);
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

std::string pid_space() {
  std::error_code ignored;
  return fmt::format("{} {}", machine_id(), std::filesystem::read_symlink("/proc/self/ns/pid", ignored).string());
}

std::string machine_of(const std::string& pid_space) {
  return pid_space.substr(0, pid_space.find(' ', pid_space.find(' ') + 1));
}

bool is_this_machine(const std::string& host) {
  if (is_numeric_host(host)) return is_loopback_host(host) || is_own_address(host);
  return is_loopback_host(host) || on_one_host(host, machine_name()) || is_name_of_this_machine(host);
}

bool is_port_taken(const host_port& place) {
  const bool is_every = place.host == "*";  // of IPv4 and of IPv6
  auto addresses = addresses_of(is_every ? "" : place.host, std::to_string(place.port), AI_PASSIVE);
  if (!is_every && !addresses.empty()) addresses.resize(1);
  return std::any_of(addresses.begin(), addresses.end(), is_taken);
}

}  // namespace troupe
