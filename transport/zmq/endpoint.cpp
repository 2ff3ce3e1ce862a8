#include "transport/zmq/endpoint.hpp"

#include <algorithm>
#include <cstring>
#include <string_view>

#include <sys/socket.h>
#include <sys/un.h>

#include "base/error.hpp"
#include "base/file_descriptor.hpp"
#include "base/host_port.hpp"

namespace troupe::detail {
namespace {

constexpr std::string_view tcp = "tcp://";

}  // namespace

bool names_a_host(const std::string& endpoint) {
  const auto place = split_endpoint(endpoint);
  return place && !is_for_ipv6(endpoint) && !is_numeric_host(place->host);
}

bool is_for_ipv6(const std::string& endpoint) {
  return endpoint.starts_with("tcp://[") || endpoint.starts_with("tcp://*:");
}

void check_endpoint(const std::string& endpoint) {
  if (const auto file = socket_file(endpoint); file && !file->empty()) {
    if (file->size() >= sizeof(sockaddr_un::sun_path))
      refuse("{}: the path is too long for a socket: at most {} characters", endpoint,
             sizeof(sockaddr_un::sun_path) - 1);
    return;
  }
  if (split_endpoint(endpoint)) return;
  const auto colon = endpoint.rfind(':');
  if (endpoint.starts_with(tcp) && colon > tcp.size()) {
    const std::string host = endpoint.substr(tcp.size(), colon - tcp.size()), port = endpoint.substr(colon);
    if (split_endpoint("tcp://[" + host + "]" + port))
      refuse("{}: an IPv6 address needs brackets: tcp://[{}]{}", endpoint, host, port);
  }
  refuse("{}: not an address: write tcp://host:port or ipc://path", endpoint);
}

bool is_loopback(const std::string& endpoint) {
  if (socket_file(endpoint)) return true;
  const auto place = split_endpoint(endpoint);
  return place && is_loopback_host(place->host);
}

std::string bindable(const std::string& endpoint) {
  const auto place = split_endpoint(endpoint);
  return place && place->host == "localhost" ? "tcp://127.0.0.1:" + std::to_string(place->port) : endpoint;
}

bool someone_listens(const std::string& ipc_endpoint) {
  const socket_address address = addresses_at(ipc_endpoint).front();
  const file_descriptor probe(::socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
  return ::connect(probe.number(), address.get(), address.length) == 0;
}

std::vector<socket_address> addresses_at(const std::string& endpoint) {
  if (const auto file = socket_file(endpoint)) {
    sockaddr_un path{};
    path.sun_family = AF_UNIX;
    std::memcpy(path.sun_path, file->data(), file->size());
    socket_address address;
    std::memcpy(&address.bytes, &path, sizeof path);
    address.length = sizeof path;
    return {address};
  }
  const auto place = split_endpoint(endpoint);
  return place ? addresses_of(place->host, std::to_string(place->port)) : std::vector<socket_address>();
}

std::vector<std::string> numeric_endpoints(const std::string& named) {
  auto addresses = addresses_at(named);
  std::stable_partition(addresses.begin(), addresses.end(),
                        [](const socket_address& each) { return each.family() == AF_INET; });
  std::vector<std::string> endpoints;
  for (const socket_address& each : addresses) endpoints.push_back(std::string(tcp) + text_of(each.in_numbers()));
  return endpoints;
}

}  // namespace troupe::detail
