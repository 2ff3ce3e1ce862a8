// Who may connect: answers libzmq's questions (ZeroMQ RFC 27) within one context.
#pragma once
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_set>

#include <zmq.hpp>

#include "transport/zmq/curve.hpp"

namespace troupe::detail {

/// What a connection's user is called.
constexpr std::string_view node_user = "node", client_user = "client";

class zap_handler {
 public:
  /// Who has the cluster's key is a node, who has another that is allowed a client. Throws input_error for what is no
  /// key.
  zap_handler(zmq::context_t& context, const curve_keys& keys);

  zmq::socket_t& socket() { return socket_; }
  /// Answers what is there to answer, without waiting. `refused` is told who was not let in.
  void answer(const std::function<void(const std::string& address)>& refused);

 private:
  bool is_client(const std::string& key) const;

  zmq::socket_t socket_;
  std::string cluster_key_;  // raw, as those that follow
  std::unordered_set<std::string> allowed_;
  std::filesystem::path clients_folder_;
};

}  // namespace troupe::detail
