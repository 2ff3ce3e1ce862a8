// How long a head has said nothing to a client that waits for it, and what follows from that. No clock: time in which
// the client waits for nothing does not count (a chat may rest for an hour), nor does time in which it was stopped.
#pragma once
#include <utility>

#include "base/clock.hpp"

namespace troupe {

class head_silence {
 public:
  static constexpr std::chrono::seconds patience{60};

  void heard() { *this = head_silence(); }
  /// The client has waited so much longer, and nothing came.
  void waited(duration longer) { lasted_ += longer; }

  /// Whether to ask if the head is there.
  bool is_odd() const { return lasted_ > std::chrono::seconds(1); }
  /// Whether to tell the user: true once in a silence.
  bool is_worth_a_note() { return lasted_ > std::chrono::seconds(5) && !std::exchange(noted_, true); }
  /// Whether to give up.
  bool is_too_long() const { return lasted_ > patience; }

 private:
  duration lasted_{};
  bool noted_ = false;
};

}  // namespace troupe
