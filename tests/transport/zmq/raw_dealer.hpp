#pragma once
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <zmq.hpp>

#include "transport/zmq/codec.hpp"
#include "transport/zmq/frame.hpp"
#include "transport/zmq/greeting.hpp"

namespace troupe {

/// Speaks to a bus by hand.
class raw_dealer {
 public:
  explicit raw_dealer(const std::string& where) : socket_(context_, zmq::socket_type::dealer) {
    socket_.set(zmq::sockopt::linger, 1000);
    socket_.set(zmq::sockopt::rcvtimeo, 10'000);
    socket_.connect(where);
  }

  void send(const std::vector<std::vector<std::byte>>& parts) {
    for (const auto& part : parts)
      socket_.send(zmq::const_buffer(part.data(), part.size()),
                   &part == &parts.back() ? zmq::send_flags::none : zmq::send_flags::sndmore);
  }
  void send(frame_header header, const std::vector<std::byte>& body = {}) {
    header.body_bytes = body.size();
    send({bytes_of(header), body});
  }
  static std::vector<std::byte> bytes_of(const frame_header& header) {
    std::vector<std::byte> bytes(frame_header::size);
    write_header(header, std::span<std::byte, frame_header::size>(bytes.data(), bytes.size()));
    return bytes;
  }
  static frame_header header_of(std::uint16_t kind, std::uint64_t sequence) {
    frame_header header;
    header.kind = kind;
    header.sequence = sequence;
    return header;
  }
  void greet(detail::greeting said = {{1, 2}, 1}) {
    send(header_of(static_cast<std::uint16_t>(detail::control_kind::greeting), 0), encode(said));
    ASSERT_EQ(hear(), static_cast<std::uint16_t>(detail::control_kind::welcome));
  }
  /// The kind of the next frame; 0: none.
  std::uint16_t hear() {
    zmq::message_t head, body;
    if (!socket_.recv(head) || head.size() != frame_header::size) return 0;
    for (bool more = head.more(); more; more = body.more())
      if (!socket_.recv(body)) return 0;
    std::uint16_t kind = 0;
    std::memcpy(&kind, static_cast<const char*>(head.data()) + 6, sizeof kind);
    return kind;
  }

 private:
  zmq::context_t context_;
  zmq::socket_t socket_;
};

}  // namespace troupe
