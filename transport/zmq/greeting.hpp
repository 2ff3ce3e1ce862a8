// What two buses say to each other besides their owners' frames: frames of reserved kinds, with sequence 0.
//
//   dialing side                     listening side
//   greeting ───────────────────────▶ finds or makes the link
//            ◀─────────────────────── welcome
//   each sends what the other does not have yet; then frames and confirmations both ways
#pragma once
#include <array>
#include <cstdint>

#include "base/fields.hpp"
#include "transport/zmq/frame.hpp"

namespace troupe::detail {

enum class control_kind : std::uint16_t {
  greeting = first_reserved_kind,
  welcome,
  confirmation,
  probe,   ///< asks for a confirmation now
  goodbye  ///< this side has given the link up
};

/// Random: one bus, from its start to its end.
using instance_id = std::array<std::uint64_t, 2>;

struct greeting {
  instance_id from{};
  std::uint64_t link = 0;      ///< the dialing side's number
  std::uint64_t attempt = 1;   ///< how often it has dialed for this link
  instance_id to{};            ///< whom the dialing side welcomed last; zeros: nobody yet
  std::uint64_t session = 0;   ///< what that one called the link; 0: nobody yet
  std::uint64_t received = 0;  ///< the last frame that came from it
  std::uint64_t first = 1;     ///< the oldest frame that the dialing side still has

  auto fields() { return std::tie(from, link, attempt, to, session, received, first); }
};

struct welcome {
  instance_id from{};
  std::uint64_t session = 0;
  std::uint64_t received = 0;

  auto fields() { return std::tie(from, session, received); }
};

struct confirmation {
  std::uint64_t received = 0;

  auto fields() { return std::tie(received); }
};

}  // namespace troupe::detail
