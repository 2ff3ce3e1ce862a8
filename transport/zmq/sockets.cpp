#include "transport/zmq/sockets.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

#include "base/error.hpp"
#include "base/host_port.hpp"
#include "transport/zmq/endpoint.hpp"

#if defined(__SANITIZE_THREAD__)
#define TROUPE_THREAD_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define TROUPE_THREAD_SANITIZER 1
#endif
#endif

#ifdef TROUPE_THREAD_SANITIZER
// libzmq and its cipher are not instrumented, so their own synchronisation is not seen.
extern "C" const char* __tsan_default_suppressions() {
  return "race:libzmq.so\nrace:libsodium.so\ncalled_from_lib:libzmq.so.5\n";
}
#endif

namespace troupe::detail {
namespace {

constexpr std::size_t worth_sharing = 1024;

void set_common(zmq::socket_t& socket, const bus::options& options, bool ipv6) {
  socket.set(zmq::sockopt::linger, 0);
  socket.set(zmq::sockopt::sndhwm, 0);  // send_window bounds it, in bytes
  socket.set(zmq::sockopt::rcvhwm, 256);
  socket.set(zmq::sockopt::maxmsgsize,
             static_cast<std::int64_t>(
                 std::max({options.limits.body_bytes, options.limits.attachment_bytes, std::uint64_t{4096}})));
  socket.set(zmq::sockopt::ipv6, ipv6);
  socket.set(zmq::sockopt::tcp_keepalive, 1);
  socket.set(zmq::sockopt::tcp_keepalive_idle, 10);
  socket.set(zmq::sockopt::tcp_keepalive_intvl, 5);
  socket.set(zmq::sockopt::tcp_keepalive_cnt, 3);
  // Finds connections that died silently, and makes them again; links survive that.
  socket.set(zmq::sockopt::heartbeat_ivl, 1000);
  socket.set(zmq::sockopt::heartbeat_timeout, 5000);
  socket.set(zmq::sockopt::handshake_ivl, 5000);
}

int flags_of_part(bool more) {
  return ZMQ_DONTWAIT | (more ? ZMQ_SNDMORE : 0);
}

}  // namespace

bool receive(zmq::socket_t& from, message_parts& parts) {
  parts.count = 0;
  parts.too_many = false;
  for (bool more = true; more;) {
    zmq::message_t surplus;
    const bool room = parts.count < parts.part.size();
    zmq::message_t& into = room ? parts.part[parts.count] : surplus;
    if (zmq_msg_recv(into.handle(), from.handle(), ZMQ_DONTWAIT) < 0) return false;
    if (room)
      ++parts.count;
    else
      parts.too_many = true;
    more = into.more();
  }
  return true;
}

bool send_part(zmq::socket_t& to, zmq::message_t& part, bool more) {
  return zmq_msg_send(part.handle(), to.handle(), flags_of_part(more)) >= 0;
}

bool has_input(zmq::socket_t& socket) {
  return (socket.get(zmq::sockopt::events) & ZMQ_POLLIN) != 0;
}

int signal_of(zmq::socket_t& socket) {
  return socket.get(zmq::sockopt::fd);
}

std::span<const std::byte> bytes_of(const zmq::message_t& message) {
  return {static_cast<const std::byte*>(message.data()), message.size()};
}

zmq::message_t message_of(std::span<const std::byte> bytes, const std::shared_ptr<const void>& owner) {
  if (bytes.size() < worth_sharing) return {bytes.data(), bytes.size()};
  using holder = std::shared_ptr<const void>;
  auto held = std::make_unique<holder>(owner);
  // libzmq never writes to what it sends.
  auto* data = const_cast<std::byte*>(bytes.data());
  zmq::message_t message(
      data, bytes.size(), [](void*, void* hint) { delete static_cast<holder*>(hint); }, held.get());
  held.release();  // NOLINT(bugprone-unused-return-value): the message has it now
  return message;
}

shared_bytes shared_from(zmq::message_t message) {
  if (reinterpret_cast<std::uintptr_t>(message.data()) % 8 != 0 || message.size() < worth_sharing) {
    auto copy = std::make_shared<std::vector<std::uint64_t>>((message.size() + 7) / 8);
    if (!message.empty()) std::memcpy(copy->data(), message.data(), message.size());
    const std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(copy->data()), message.size());
    return {std::move(copy), bytes};
  }
  auto owner = std::make_shared<zmq::message_t>(std::move(message));
  const auto bytes = bytes_of(*owner);
  return {std::move(owner), bytes};
}

std::string peer_address(const zmq::message_t& message) {
  // Not zmq::message_t::gets, which throws where there is none.
  const char* address = zmq_msg_gets(const_cast<zmq_msg_t*>(message.handle()), "Peer-Address");
  if (address == nullptr || *address == '\0') return "an unknown address";
  // So says a socket that listens for both kinds of one of IPv4.
  constexpr std::string_view mapped = "::ffff:";
  return std::string_view(address).starts_with(mapped) ? address + mapped.size() : address;
}

std::string peer_user(const zmq::message_t& message) {
  const char* user = zmq_msg_gets(const_cast<zmq_msg_t*>(message.handle()), "User-Id");
  return user != nullptr ? user : "";
}

zmq::socket_t listening_socket(zmq::context_t& context, const bus::options& options) {
  zmq::socket_t socket(context, zmq::socket_type::router);
  set_common(socket, options, is_for_ipv6(options.listen));
  socket.set(zmq::sockopt::router_mandatory, true);
  // Set even without keys: with a domain, libzmq turns away peers of its oldest protocols. Without one, some of those
  // that break off while they greet would end the process there.
  socket.set(zmq::sockopt::zap_domain, "troupe");
  if (options.keys) {
    socket.set(zmq::sockopt::curve_server, true);
    socket.set(zmq::sockopt::curve_secretkey, options.keys->own.secret_key);
  }
  // An address that is taken is no bad input: it may be free the next time.
  if (socket_file(options.listen) && someone_listens(options.listen))
    throw std::runtime_error(
        fmt::format("{}: another process listens there: choose another path, or end that process", options.listen));
  try {
    socket.bind(bindable(options.listen));
  } catch (const zmq::error_t& fault) {
    if (fault.num() == EADDRINUSE)
      throw std::runtime_error(fmt::format(
          "{}: the address is taken: choose another port, or end the process that listens there", options.listen));
    if (fault.num() == ENODEV || fault.num() == EADDRNOTAVAIL)
      refuse("{}: that is no address of this machine: name one by its number, or listen at every one with tcp://*:PORT",
             options.listen);
    refuse("{}: cannot listen there: {}", options.listen, fault.what());
  }
  return socket;
}

zmq::socket_t dialing_socket(zmq::context_t& context, const bus::options& options, const std::string& endpoint,
                             const std::string& server_key) {
  zmq::socket_t socket(context, zmq::socket_type::dealer);
  set_common(socket, options, is_for_ipv6(endpoint));
  socket.set(zmq::sockopt::reconnect_ivl, 20);
  socket.set(zmq::sockopt::reconnect_ivl_max, 500);
  socket.set(zmq::sockopt::connect_timeout, 2000);
  if (options.keys) {
    socket.set(zmq::sockopt::curve_serverkey, server_key.empty() ? options.keys->cluster_public_key : server_key);
    socket.set(zmq::sockopt::curve_publickey, options.keys->own.public_key);
    socket.set(zmq::sockopt::curve_secretkey, options.keys->own.secret_key);
  }
  return socket;
}

zmq::socket_t watch(zmq::context_t& context, zmq::socket_t& socket, int events) {
  static std::atomic<std::uint64_t> count{0};
  const std::string name = fmt::format("inproc://watch-{}", ++count);
  if (zmq_socket_monitor(socket.handle(), name.c_str(), events) != 0) throw zmq::error_t();
  zmq::socket_t monitor(context, zmq::socket_type::pair);
  monitor.set(zmq::sockopt::linger, 0);
  monitor.set(zmq::sockopt::rcvhwm, 0);  // libzmq's thread would wait for room, too
  monitor.connect(name);
  return monitor;
}

void stop_watching(zmq::socket_t& socket, zmq::socket_t& monitor) {
  zmq_socket_monitor(socket.handle(), nullptr, 0);
  monitor.close();
}

std::optional<socket_event> next_event(zmq::socket_t& monitor) {
  message_parts parts;
  if (!receive(monitor, parts)) return std::nullopt;
  socket_event event;
  constexpr std::size_t expected = sizeof event.kind + sizeof event.value;
  if (parts.part[0].size() < expected) return event;
  const auto bytes = bytes_of(parts.part[0]);
  std::memcpy(&event.kind, bytes.data(), sizeof event.kind);
  std::memcpy(&event.value, bytes.data() + sizeof event.kind, sizeof event.value);
  return event;
}

}  // namespace troupe::detail
