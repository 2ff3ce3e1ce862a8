// How a process talks to others: one thread, one ROUTER socket where others connect (if it listens), one DEALER socket
// for every address it connects to. The owner of a bus sees links, not sockets.
//
// Goals
// - A link carries frames in order, both ways, for as long as both processes live; a connection that breaks is made
//   again without a word, and what was queued meanwhile arrives.
// - Whatever arrives is checked (frame.hpp) before it is handed on. A bad frame closes that link, says why through
//   on_closed, and disturbs nothing else.
// - Nothing grows without bound: a link holds at most `queue_bytes` to be sent, or one larger frame; beyond it send()
//   says `full`.
// - Beyond this machine traffic is encrypted and both sides are known (CURVE), see curve.hpp.
// How the goals are met: every frame of a link is counted, and kept until the other side confirms it. A connection
// begins with a greeting in which each side says which process it is and what it has received, and goes on from there;
// so a frame comes to a process exactly once. After a restart another process may answer at an address that was
// connected to: it gets what the one before it never confirmed. A process that connected to us counts as gone if it
// cannot be reached for `forget_after`; whoever connects says whether it tries for ever or gives up as soon.
//
// Threads: a sender writes into the socket itself, under the bus' lock; the bus' thread reads, times and calls back;
// one more looks up each name that is needed, which no link waits for but the one that needs it. They are at most
// eight: if as many have no answer yet, the next name waits for one.
//
// Non-goals: who is on a link (that is said in frames), who is alive (heartbeats are frames), order between links.
#pragma once
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>

#include "transport/zmq/curve.hpp"
#include "transport/zmq/frame.hpp"
#include "transport/zmq/link.hpp"

namespace troupe {

enum class send_status : std::uint8_t {
  queued,
  full,  ///< the other side reads too slowly: try later, or give it up
  gone   ///< no such link (any more)
};

/// What becomes of a link that we opened if nobody can be reached there.
enum class dialing : std::uint8_t {
  for_ever,
  until_forgotten  ///< it ends after `forget_after`, as one that others opened
};

class bus {
 public:
  struct options {
    std::string listen;     ///< tcp://host:port or ipc://path; port 0: any free one; empty: nobody connects to us
    bool insecure = false;  ///< allows to listen beyond loopback without keys
    std::optional<curve_keys> keys;  ///< of this process; then every link is encrypted
    frame_limits limits;
    std::uint64_t queue_bytes = 256 << 20;  ///< per link
    std::size_t max_links = 4096;           ///< that others may open
    std::chrono::milliseconds forget_after{10'000};
  };
  /// Called on the bus' thread, never after ~bus; must be quick, not throw and not destroy the bus. send(), connect()
  /// and close() may be called from them.
  struct events {
    std::function<void(link_id, frame)> on_frame;
    /// A link that is not usable any more: closed by the bus for a reason, closed by the other side, or the other
    /// process is gone for good. Not called for what close() closed. With no_link: somebody who was refused before it
    /// had a link.
    std::function<void(link_id, const link_end& end)> on_closed;
  };

  /// Listens before it returns. Throws input_error where that is impossible (address taken, no keys for an address
  /// beyond loopback).
  bus(options chosen, events handlers);
  ~bus();  ///< what is queued is sent for at most a second
  bus(const bus&) = delete;
  bus& operator=(const bus&) = delete;

  /// Where others reach us, with the port that was found; empty where nobody can.
  const std::string& endpoint() const;

  /// Whether whoever listens there has answered and can be reached, now or within so long; a link that is gone, or goes
  /// meanwhile, is not waited for. Thread-safe.
  bool wait_up(link_id link, std::chrono::milliseconds longest, const std::stop_token& stop);

  // Thread-safe, never wait:
  /// Whether its connection stands, as far as this machine can tell: it ends at once with the other process, whatever
  /// that dies of, but only after seconds where the network is cut or the other machine is gone.
  bool is_connected(link_id link);
  /// A link to whoever listens there, now or later. `server_key`: the public key of that process, where keys are used.
  link_id connect(const std::string& endpoint, const std::string& server_key = {}, dialing how = dialing::for_ever);
  /// A frame beyond the limits is our own mistake: std::length_error.
  send_status send(link_id to, frame message);
  /// Tells the other side. Frames that have come already may still be handed on.
  void close(link_id link);
  /// Whether the other side came with a client's key: it is no node. Without keys nobody did.
  bool is_client(link_id link) const;

 private:
  class impl;
  std::unique_ptr<impl> impl_;
};

}  // namespace troupe
