#include "base/timed_socket.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdint>

#include <poll.h>
#include <sys/socket.h>

#include "base/to_size.hpp"

namespace troupe {

bool timed_socket::send(std::string_view bytes) {
  while (!bytes.empty()) {
    if (!is_ready(socket_.number(), POLLOUT, deadline_, stop_)) return false;
    const ssize_t sent = ::send(socket_.number(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno != EAGAIN && errno != EINTR) return false;
    if (sent > 0) bytes.remove_prefix(to_size(sent));
  }
  return true;
}

bool timed_socket::receive(char* to, std::size_t bytes) {
  while (bytes > 0) {
    if (!is_ready(socket_.number(), POLLIN, deadline_, stop_)) return false;
    const ssize_t got = ::recv(socket_.number(), to, bytes, MSG_DONTWAIT);
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) return false;
    if (got > 0) {
      to += got;
      bytes -= to_size(got);
    }
  }
  return true;
}

file_descriptor connected_to(const socket_address& address, timed_socket::moment deadline,
                             const std::stop_token& stop) {
  file_descriptor socket(::socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  int fault = 0;
  socklen_t size = sizeof fault;
  const bool begun = ::connect(socket.number(), address.get(), address.length) == 0 || errno == EINPROGRESS;
  const bool done = begun && is_ready(socket.number(), POLLOUT, deadline, stop) &&
                    ::getsockopt(socket.number(), SOL_SOCKET, SO_ERROR, &fault, &size) == 0 && fault == 0;
  return done ? std::move(socket) : file_descriptor();
}

// Waits in short pieces, so that a stop is seen.
bool is_ready(int descriptor, short events, timed_socket::moment deadline, const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    pollfd asked{descriptor, events, 0};
    if (::poll(&asked, 1, static_cast<int>(std::clamp<std::int64_t>(left.count(), 0, 50))) > 0) return true;
    if (left.count() <= 0) return false;
  }
  return false;
}

}  // namespace troupe
