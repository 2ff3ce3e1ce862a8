// Who may connect: answers libzmq's questions (ZeroMQ RFC 27) within one context.
#pragma once
#include <functional>
#include <string>
#include <unordered_set>
#include <vector>

#include <zmq.hpp>

namespace troupe::detail {

class zap_handler {
 public:
  /// Throws input_error for something in `allowed` that is no key.
  zap_handler(zmq::context_t& context, const std::vector<std::string>& allowed);

  zmq::socket_t& socket() { return socket_; }
  /// Answers what is there to answer, without waiting. `refused` is told who was not let in.
  void answer(const std::function<void(const std::string& address)>& refused);

 private:
  zmq::socket_t socket_;
  std::unordered_set<std::string> allowed_;  // raw keys
};

}  // namespace troupe::detail
