// TCP and its like for whoever waits, but not for ever.
#pragma once
#include <chrono>
#include <cstddef>
#include <stop_token>
#include <string_view>
#include <utility>

#include "base/addresses.hpp"
#include "base/file_descriptor.hpp"

namespace troupe {

/// A connection that sends and receives all of something: false where that does not pass before the deadline, or was to
/// stop.
class timed_socket {
 public:
  using moment = std::chrono::steady_clock::time_point;

  timed_socket(file_descriptor socket, moment deadline, std::stop_token stop = {})
      : socket_(std::move(socket)), deadline_(deadline), stop_(std::move(stop)) {}

  bool send(std::string_view bytes);
  bool receive(char* to, std::size_t bytes);
  void allow_until(moment deadline) { deadline_ = deadline; }
  socket_address local_address() const { return local_address_of(socket_.number()); }

 private:
  file_descriptor socket_;
  moment deadline_;
  std::stop_token stop_;
};

/// Not open where nobody listens there, or does not answer in time.
file_descriptor connected_to(const socket_address& address, timed_socket::moment deadline,
                             const std::stop_token& stop = {});
/// Whether poll() finds the events before the deadline.
bool is_ready(int descriptor, short events, timed_socket::moment deadline, const std::stop_token& stop = {});

}  // namespace troupe
