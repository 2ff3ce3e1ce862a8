#include "transport/zmq/mechanism.hpp"

#include <array>
#include <string_view>
#include <utility>

#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "transport/zmq/endpoint.hpp"

namespace troupe::detail {
namespace {

// A greeting of ZMTP 3: ten bytes of signature, two of version, twenty of the mechanism's name, and others.
constexpr std::size_t before_name = 12, name_bytes = 20;
constexpr std::array<char, before_name> first_bytes{'\xff', 0, 0, 0, 0, 0, 0, 0, 1, '\x7f', 3, 0};
constexpr timeval patience{0, 200'000};

class connection {
 public:
  explicit connection(const std::string& endpoint) {
    with_address_of(endpoint, [this](int family, const sockaddr* address, socklen_t length) {
      socket_ = ::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
      if (socket_ < 0) return false;
      for (const int wait : {SO_SNDTIMEO, SO_RCVTIMEO})
        ::setsockopt(socket_, SOL_SOCKET, wait, &patience, sizeof patience);
      if (::connect(socket_, address, length) == 0) return true;
      ::close(std::exchange(socket_, -1));
      return false;
    });
  }
  ~connection() {
    if (socket_ >= 0) ::close(socket_);
  }
  connection(const connection&) = delete;
  connection& operator=(const connection&) = delete;

  bool send(std::string_view bytes) const {
    return socket_ >= 0 && ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL) == std::ssize(bytes);
  }
  /// Less where the other side has no more to say in time.
  std::string receive(std::size_t count) const {
    std::string bytes(count, '\0');
    std::size_t there = 0;
    while (there < count) {
      const ssize_t more = ::recv(socket_, bytes.data() + there, count - there, 0);
      if (more <= 0) break;
      there += static_cast<std::size_t>(more);
    }
    bytes.resize(there);
    return bytes;
  }

 private:
  int socket_ = -1;
};

}  // namespace

std::string mechanism_at(const std::string& endpoint) {
  const connection listener(endpoint);
  if (!listener.send({first_bytes.data(), first_bytes.size()})) return {};
  const std::string said = listener.receive(before_name + name_bytes);
  if (said.size() < before_name + name_bytes || said[0] != first_bytes[0]) return {};
  const std::string name = said.substr(before_name);
  return name.substr(0, name.find('\0'));
}

}  // namespace troupe::detail
