// What a bus needs of libzmq, with our settings.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include <zmq.hpp>

#include "base/shared_bytes.hpp"
#include "transport/zmq/bus.hpp"

namespace troupe::detail {

/// One message as it came; a part beyond the most that makes sense is thrown away and remembered.
struct message_parts {
  std::array<zmq::message_t, 4> part;  // of a ROUTER: who, header, body, attachment
  std::size_t count = 0;
  bool too_many = false;
};
/// False: nothing is there.
bool receive(zmq::socket_t& from, message_parts& parts);
/// False: the other side cannot be reached.
bool send_part(zmq::socket_t& to, zmq::message_t& part, bool more);
/// Whether something can be read. As it also takes the socket's signal, whoever asks must see to it that it is read.
bool has_input(zmq::socket_t& socket);
int signal_of(zmq::socket_t& socket);

std::span<const std::byte> bytes_of(const zmq::message_t& message);
/// Copies what is short, and refers to what is not: `owner` then lives until libzmq has sent it.
zmq::message_t message_of(std::span<const std::byte> bytes, const std::shared_ptr<const void>& owner);
/// Without a copy unless the bytes lie badly: they begin at a multiple of 8.
shared_bytes shared_from(zmq::message_t message);
/// "10.0.0.7", or "an unknown address".
std::string peer_address(const zmq::message_t& message);

/// What the listener's ZAP handler called the other side; empty where there are no keys.
std::string peer_user(const zmq::message_t& message);

zmq::socket_t listening_socket(zmq::context_t& context, const bus::options& options);
/// `endpoint`: with numbers, as libzmq would look a name up on the one thread that serves every link.
zmq::socket_t dialing_socket(zmq::context_t& context, const bus::options& options, const std::string& endpoint,
                             const std::string& server_key);

/// What libzmq tells about a socket's connections.
struct socket_event {
  std::uint16_t kind = 0;  // ZMQ_EVENT_…
  std::uint32_t value = 0;
};
zmq::socket_t watch(zmq::context_t& context, zmq::socket_t& socket, int events);
std::optional<socket_event> next_event(zmq::socket_t& monitor);
/// To be called before either is closed: libzmq's thread would wait for ever to tell a monitor that is gone.
void stop_watching(zmq::socket_t& socket, zmq::socket_t& monitor);

}  // namespace troupe::detail
