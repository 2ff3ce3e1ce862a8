// The size of the frames of a replica's steps: the bus' limits grow with the model, so that no step is too large for
// it.
#pragma once
#include <cstdint>

#include "transport/zmq/bus.hpp"

namespace troupe {

struct step_sizes {
  std::uint64_t rows = 0, sequences = 0;  ///< of one step, at most
  std::uint64_t steps = 1;                ///< in flight, at most
  std::uint64_t hidden = 0;               ///< floats in a row
  std::uint64_t context = 0;
};

/// Activations are sent as attachments. The queue of a link holds those of all steps in flight, and one more.
void make_room_for_steps(const step_sizes& sizes, bus::options& options);

/// Whether links made for steps of the sizes `links` take every frame of steps of the sizes `others`.
bool have_room_for(const step_sizes& others, const step_sizes& links);

}  // namespace troupe
