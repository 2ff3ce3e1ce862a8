// The clients of `troupe bench http`: a process of its own, so that memory can be measured for the server alone.
#pragma once
#include <chrono>
#include <cstdint>

#include <sys/types.h>

#include "base/file_descriptor.hpp"

namespace troupe {

/// The text of a token of the load is when it was handed to the interface. All processes of a machine have this clock,
/// so the client sees how long the token took.
inline std::int64_t now_ns() {
  return std::chrono::steady_clock::now().time_since_epoch().count();
}

/// What the clients saw.
struct client_figures {
  double delay_p50 = 0, delay_p99 = 0;  ///< of tokens that say when they were handed over, in milliseconds
  double grown_p99 = 0;                 ///< by how much gaps between tokens grew
  double tokens = 0;                    ///< that say it
  double broken = 0;                    ///< streams
};

class client_process {
 public:
  /// To be made before there are threads. Throws runtime_error.
  explicit client_process(int streams);

  /// All clients ask the server at this port. Throws runtime_error where the process is gone.
  void begin(std::uint16_t port) const;
  /// Waits for the end of all streams.
  client_figures figures() const;

 private:
  file_descriptor port_to_, figures_from_;  ///< pipes
  pid_t pid_ = -1;
};

}  // namespace troupe
