#include "transport/zmq/mechanism.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <string_view>

#include <sys/socket.h>
#include <sys/time.h>

#include "base/file_descriptor.hpp"
#include "transport/zmq/endpoint.hpp"

namespace troupe::detail {
namespace {

// A greeting of ZMTP 3: ten bytes of signature, two of version, twenty of the mechanism's name, and others.
constexpr std::size_t before_name = 12, name_bytes = 20;
constexpr std::array<char, before_name> first_bytes{'\xff', 0, 0, 0, 0, 0, 0, 0, 1, '\x7f', 3, 0};
constexpr auto patience = std::chrono::milliseconds(200);

/// A connection to one listener. All its calls together take at most our patience, which begins after the name was
/// looked up.
class connection {
 public:
  explicit connection(const std::string& endpoint) {
    const auto addresses = addresses_at(endpoint);
    is_connected_ = std::any_of(addresses.begin(), addresses.end(), [this](const socket_address& each) {
      socket_ = file_descriptor(::socket(each.family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
      return allow_what_is_left(SO_SNDTIMEO) && ::connect(socket_.number(), each.get(), each.length) == 0;
    });
  }

  bool send(std::string_view bytes) const {
    return is_connected_ && ::send(socket_.number(), bytes.data(), bytes.size(), MSG_NOSIGNAL) == std::ssize(bytes);
  }
  /// Less where the other side has no more to say in time.
  std::string receive(std::size_t count) {
    std::string bytes(count, '\0');
    std::size_t there = 0;
    while (there < count && allow_what_is_left(SO_RCVTIMEO)) {
      const ssize_t more = ::recv(socket_.number(), bytes.data() + there, count - there, 0);
      if (more <= 0) break;
      there += static_cast<std::size_t>(more);
    }
    bytes.resize(there);
    return bytes;
  }

 private:
  using steady = std::chrono::steady_clock;

  /// False: nothing is left, or there is no socket. It counts from the first call.
  bool allow_what_is_left(int option) {
    if (end_ == steady::time_point()) end_ = steady::now() + patience;
    const auto left = std::chrono::duration_cast<std::chrono::microseconds>(end_ - steady::now()).count();
    const timeval wait{0, left};
    return left > 0 && ::setsockopt(socket_.number(), SOL_SOCKET, option, &wait, sizeof wait) == 0;
  }

  file_descriptor socket_;
  bool is_connected_ = false;
  steady::time_point end_{};
};

}  // namespace

std::string mechanism_at(const std::string& endpoint) {
  connection listener(endpoint);
  if (!listener.send({first_bytes.data(), first_bytes.size()})) return {};
  const std::string greeting = listener.receive(before_name + name_bytes);
  if (greeting.size() < before_name + name_bytes || greeting[0] != first_bytes[0]) return {};
  const std::string name = greeting.substr(before_name);
  return name.substr(0, name.find('\0'));
}

}  // namespace troupe::detail
