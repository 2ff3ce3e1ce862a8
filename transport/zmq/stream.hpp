// The two directions of a link, without a socket: what was sent and is not confirmed, and what has come.
#pragma once
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "transport/zmq/frame.hpp"

namespace troupe::detail {

/// A frame as it is kept until the other side confirms it. Immutable, so that sockets may share it.
struct outgoing {
  frame_header header;
  std::vector<std::byte> body;
  shared_bytes attachment;
};

/// Frames to send, numbered from 1, each kept until it is confirmed. A new connection goes on from where the other side
/// says that it is.
class send_window {
 public:
  explicit send_window(std::uint64_t byte_limit) : byte_limit_(byte_limit) {}

  /// A single frame always finds room, however large; otherwise it could never be sent.
  bool takes(const frame& message) const {
    return empty() || bytes_ + cost(message.body.size(), message.attachment.size()) <= byte_limit_;
  }
  void push(frame message);

  /// The next frame that this connection has not been given; null: none.
  std::shared_ptr<const outgoing> next() const;
  void sent() { ++given_; }
  /// A new connection has been given nothing.
  void restart() { given_ = 0; }

  /// The other side has all frames up to and including this one. False: it cannot.
  bool confirm(std::uint64_t sequence);

  std::uint64_t first_kept() const { return confirmed_ + 1; }
  bool empty() const { return kept_.empty(); }

 private:
  // So that tiny frames are not free.
  static constexpr std::uint64_t overhead = 128;
  static std::uint64_t cost(std::uint64_t body, std::uint64_t attachment) { return body + attachment + overhead; }

  const std::uint64_t byte_limit_;
  std::deque<std::shared_ptr<const outgoing>> kept_;
  std::uint64_t confirmed_ = 0, bytes_ = 0;
  std::size_t given_ = 0;  // of kept_, from its front
};

/// Counts what comes, and says when it is time to confirm it.
class receive_counter {
 public:
  /// Why a frame with this number cannot be the next one.
  std::optional<frame_error> accept(const frame_header& header);
  void begin_after(std::uint64_t sequence) {
    last_ = confirmed_ = sequence;
    bytes_ = 0;
  }

  std::uint64_t last() const { return last_; }
  bool unconfirmed() const { return last_ != confirmed_; }
  /// Soon enough that the other side keeps little, seldom enough that it costs nothing.
  bool confirm_now() const { return last_ - confirmed_ >= 32 || bytes_ >= (1 << 20); }
  void confirmed() {
    confirmed_ = last_;
    bytes_ = 0;
  }

 private:
  std::uint64_t last_ = 0, confirmed_ = 0, bytes_ = 0;
};

}  // namespace troupe::detail
