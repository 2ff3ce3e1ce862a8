#include "transport/zmq/mechanism.hpp"

#include <array>
#include <chrono>
#include <utility>

#include "base/timed_socket.hpp"
#include "transport/zmq/endpoint.hpp"

namespace troupe::detail {
namespace {

// A greeting of ZMTP 3: ten bytes of signature, two of version, twenty of the mechanism's name, and others.
constexpr std::size_t before_name = 12, name_bytes = 20;
constexpr std::array<char, before_name> first_bytes{'\xff', 0, 0, 0, 0, 0, 0, 0, 1, '\x7f', 3, 0};
constexpr auto patience = std::chrono::milliseconds(200);

/// The beginning of what a listener says by itself; empty where it does not say so much in time. Our patience begins
/// after the name was looked up.
std::string greeting_at(const std::string& endpoint) {
  const auto addresses = addresses_at(endpoint);
  const auto deadline = std::chrono::steady_clock::now() + patience;
  std::string greeting(before_name + name_bytes, '\0');
  for (const socket_address& each : addresses) {
    file_descriptor socket = connected_to(each, deadline);
    if (!socket.is_open()) continue;
    timed_socket listener(std::move(socket), deadline);
    const bool has_come =
        listener.send({first_bytes.data(), first_bytes.size()}) && listener.receive(greeting.data(), greeting.size());
    return has_come ? greeting : "";
  }
  return {};
}

}  // namespace

std::string mechanism_at(const std::string& endpoint) {
  const std::string greeting = greeting_at(endpoint);
  if (greeting.empty() || greeting[0] != first_bytes[0]) return {};
  const std::string name = greeting.substr(before_name);
  return name.substr(0, name.find('\0'));
}

}  // namespace troupe::detail
