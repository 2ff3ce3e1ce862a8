#include "transport/zmq/zap.hpp"

#include <string_view>
#include <vector>

#include "base/error.hpp"

namespace troupe::detail {
namespace {

std::string checked_key(const std::string& printed) {
  auto raw = raw_key(printed);
  if (!raw) refuse("{}: not a public key: `troupe keygen` makes them, 40 characters long", printed);
  return *std::move(raw);
}

// version, request, domain, address, identity, mechanism, key
constexpr std::size_t request_parts = 7;

std::vector<std::string> receive_request(zmq::socket_t& from) {
  std::vector<std::string> parts;
  for (bool more = true; more;) {
    zmq::message_t part;
    if (zmq_msg_recv(part.handle(), from.handle(), ZMQ_DONTWAIT) < 0) return {};
    more = part.more();
    if (parts.size() <= request_parts) parts.push_back(part.to_string());
  }
  return parts;
}

void reply(zmq::socket_t& to, const std::string& request, bool yes, std::string_view user) {
  const std::string_view parts[] = {"1.0", request, yes ? "200" : "400", yes ? "OK" : "unknown key", user, ""};
  for (const auto& part : parts)
    to.send(zmq::buffer(part), &part == std::end(parts) - 1 ? zmq::send_flags::none : zmq::send_flags::sndmore);
}

std::unordered_set<std::string> raw_keys(const std::vector<std::string>& printed) {
  std::unordered_set<std::string> raw;
  for (const auto& key : printed) raw.insert(checked_key(key));
  return raw;
}

}  // namespace

zap_handler::zap_handler(zmq::context_t& context, const curve_keys& keys)
    : socket_(context, zmq::socket_type::rep),
      cluster_key_(checked_key(keys.cluster_public_key)),
      allowed_(raw_keys(keys.allowed)),
      clients_folder_(keys.clients) {
  socket_.set(zmq::sockopt::linger, 0);
  socket_.bind("inproc://zeromq.zap.01");
}

/// Keys are made, replaced and taken away while we run, so each connection, of which there are few, reads them anew.
bool zap_handler::is_client(const std::string& key) const {
  return !clients_folder_.empty() && raw_keys(read_clients(clients_folder_)).contains(key);
}

void zap_handler::answer(const std::function<void(const std::string& address)>& refused) {
  for (auto request = receive_request(socket_); !request.empty(); request = receive_request(socket_)) {
    const bool known = request.size() == request_parts && request[0] == "1.0" && request[5] == "CURVE" &&
                       (allowed_.contains(request[6]) || is_client(request[6]));
    reply(socket_, request.size() > 1 ? request[1] : std::string(), known,
          known && request[6] == cluster_key_ ? node_user : client_user);
    if (!known) refused(request.size() > 3 ? request[3] : std::string("an unknown address"));
  }
}

}  // namespace troupe::detail
