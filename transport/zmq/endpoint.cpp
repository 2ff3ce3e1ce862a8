#include "transport/zmq/endpoint.hpp"

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <cstring>
#include <string_view>

#include <arpa/inet.h>
#include <netdb.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/error.hpp"
#include "base/file_descriptor.hpp"
#include "base/number_in.hpp"
#include "transport/zmq/bus.hpp"

namespace troupe {
namespace {

constexpr std::string_view tcp = "tcp://", ipc = "ipc://";

/// The host of tcp://host:port, without the brackets of an IPv6 address.
std::string_view host_of(std::string_view endpoint) {
  std::string_view host = endpoint.substr(tcp.size());
  host = host.substr(0, host.rfind(':'));
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  return host;
}

bool is_port(std::string_view text) {
  return text == "*" || number_in<std::uint16_t>(text);
}

bool is_host(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || std::string_view("-._:%*").find(static_cast<char>(c)) != std::string_view::npos;
  });
}

}  // namespace

bool is_loopback(const std::string& endpoint) {
  if (endpoint.starts_with(ipc)) return true;
  if (!endpoint.starts_with(tcp)) return false;
  const std::string host(host_of(endpoint));
  if (host == "localhost") return true;
  in_addr four{};
  if (::inet_pton(AF_INET, host.c_str(), &four) == 1) return (ntohl(four.s_addr) >> 24) == 127;
  in6_addr six{};
  return ::inet_pton(AF_INET6, host.c_str(), &six) == 1 && IN6_IS_ADDR_LOOPBACK(&six);
}

namespace detail {

bool names_a_host(const std::string& endpoint) {
  if (!endpoint.starts_with(tcp) || is_for_ipv6(endpoint)) return false;
  in_addr four{};
  return ::inet_pton(AF_INET, std::string(host_of(endpoint)).c_str(), &four) != 1;
}

bool is_for_ipv6(const std::string& endpoint) {
  return endpoint.starts_with("tcp://[") || endpoint.starts_with("tcp://*:");
}

void check_endpoint(const std::string& endpoint) {
  if (endpoint.starts_with(ipc) && endpoint.size() > ipc.size()) {
    if (endpoint.size() - ipc.size() >= sizeof(sockaddr_un::sun_path))
      refuse("{}: the path is too long for a socket: at most {} characters", endpoint,
             sizeof(sockaddr_un::sun_path) - 1);
    return;
  }
  const auto colon = endpoint.rfind(':');
  if (!endpoint.starts_with(tcp) || colon < tcp.size() || !is_host(host_of(endpoint)) ||
      !is_port(std::string_view(endpoint).substr(colon + 1)))
    refuse("{}: not an address: write tcp://host:port or ipc://path", endpoint);
  if (host_of(endpoint).find(':') != std::string_view::npos && endpoint[tcp.size()] != '[')
    refuse("{}: an IPv6 address needs brackets: tcp://[{}]{}", endpoint, host_of(endpoint), endpoint.substr(colon));
}

std::string bindable(const std::string& endpoint) {
  if (!endpoint.starts_with(tcp) || host_of(endpoint) != "localhost") return endpoint;
  return "tcp://127.0.0.1" + endpoint.substr(endpoint.rfind(':'));
}

bool someone_listens(const std::string& ipc_endpoint) {
  return with_address_of(ipc_endpoint, [](int family, const sockaddr* address, socklen_t length) {
    const file_descriptor probe(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    return ::connect(probe.number(), address, length) == 0;
  });
}

bool with_address_of(const std::string& endpoint,
                     const std::function<bool(int family, const sockaddr* address, socklen_t length)>& will_do) {
  if (endpoint.starts_with(ipc)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, endpoint.data() + ipc.size(), endpoint.size() - ipc.size());
    return will_do(AF_UNIX, reinterpret_cast<const sockaddr*>(&address), sizeof address);
  }
  addrinfo wanted{}, *found = nullptr;
  wanted.ai_socktype = SOCK_STREAM;
  const std::string host(host_of(endpoint)), port = endpoint.substr(endpoint.rfind(':') + 1);
  if (::getaddrinfo(host.c_str(), port.c_str(), &wanted, &found) != 0) return false;
  const addrinfo* each = found;
  while (each != nullptr && !will_do(each->ai_family, each->ai_addr, each->ai_addrlen)) each = each->ai_next;
  ::freeaddrinfo(found);
  return each != nullptr;
}

}  // namespace detail
}  // namespace troupe
