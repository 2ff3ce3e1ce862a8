// This process' links to others, in messages instead of frames. Thread-safe; one per process.
//
// A frame that is no message, or a message that nobody here handles, closes its link. So a process that sends something
// wrong is cut off, and nobody else notices.
#pragma once
#include <array>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "actors/interfaces.hpp"
#include "transport/zmq/bus.hpp"

namespace troupe {

/// Both are defined in wire_messages.cpp for every message.
template <message M>
frame to_frame(M message);
template <message M>
std::optional<M> from_frame(frame&& from);

class wire {
 public:
  explicit wire(bus::options options) : options_(std::move(options)) {}
  virtual ~wire() { stop(); }

  // To be called before start(). Handlers run on the bus' thread, so they tell an actor, or do what never waits.
  template <message M, class Handler>
  void on(Handler handler) {
    handlers_.at(M::kind) = [handler](link_id link, frame&& from) {
      const std::uint64_t correlation = from.correlation;
      std::optional<M> message = from_frame<M>(std::move(from));
      if (!message) return false;
      handler(incoming<M>{link, correlation, std::move(*message)});
      return true;
    };
  }
  /// Every M goes to this actor, without its link.
  template <message M, class Handle>
  void deliver(Handle to) {
    on<M>([to](incoming<M> in) { tell(to, std::move(in.message)); });
  }
  /// Every M goes to this actor, with its link.
  template <message M, class Handle>
  void deliver_with_link(Handle to) {
    on<M>([to](incoming<M> in) { tell(to, std::move(in)); });
  }
  void on_lost(std::function<void(link_id, const link_end& end)> handler) { lost_ = std::move(handler); }

  void start();
  void stop();

  // Before start() and after stop() these do nothing.
  virtual link_id connect(const std::string& endpoint, dialing how = dialing::for_ever);
  /// Waits until the other side of a link that we opened has answered, and returns whether it has.
  virtual bool wait_up(link_id link, std::chrono::milliseconds longest, const std::stop_token& stop);
  /// If the other side reads too slowly, or the message is longer than a frame, the link is given up.
  template <message M>
  void send(link_id to, M message, std::uint64_t correlation = 0) {
    frame sent = to_frame(std::move(message));
    sent.correlation = correlation;
    send_frame(to, std::move(sent));
  }
  virtual void close(link_id link);
  /// See bus::is_connected.
  virtual bool is_connected(link_id link) const;
  /// Whether the other side is a client: it has a client's key and is no node.
  bool is_client(link_id link) const;
  std::string endpoint() const;

 protected:  // what a simulated bus does in place of the real one
  virtual void send_frame(link_id to, frame sent);
  void receive(link_id link, frame&& from);
  void tell_of_loss(link_id link, const link_end& end) const {
    if (lost_) lost_(link, end);
  }

 private:
  using frame_handler = std::function<bool(link_id, frame&&)>;
  static constexpr std::size_t kinds = 64;

  std::shared_ptr<bus> running() const;
  std::string server_key() const { return options_.keys ? options_.keys->cluster_public_key : std::string(); }

  bus::options options_;
  std::array<frame_handler, kinds> handlers_;
  std::function<void(link_id, const link_end&)> lost_;
  mutable std::mutex mutex_;
  std::shared_ptr<bus> bus_;  ///< shared, since actors may still be sending when it stops
};

}  // namespace troupe
