// Who may connect: answers libzmq's questions (ZeroMQ RFC 27) within one context.
#pragma once
#include <functional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include <zmq.hpp>

namespace troupe::detail {

/// What a connection's user is called.
constexpr std::string_view node_user = "node", client_user = "client";

class zap_handler {
 public:
  /// Who has `cluster_key` is a node, who has another of `allowed` a client. Throws input_error for what is no key.
  zap_handler(zmq::context_t& context, const std::string& cluster_key, const std::vector<std::string>& allowed);

  zmq::socket_t& socket() { return socket_; }
  /// Answers what is there to answer, without waiting. `refused` is told who was not let in.
  void answer(const std::function<void(const std::string& address)>& refused);

 private:
  zmq::socket_t socket_;
  std::string cluster_key_;  // raw, as those that follow
  std::unordered_set<std::string> allowed_;
};

}  // namespace troupe::detail
