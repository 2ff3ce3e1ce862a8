#pragma once
#include <cstdint>
#include <vector>

#include "model/train/data/training_data.hpp"

namespace troupe {

/// What is measured with instead of learned.
struct held_out_examples {
  std::vector<std::size_t> examples = {};  ///< indices in rising order
  std::uint64_t fingerprint = 0;           ///< 0: drawn one by one, so their number, share and seed say which they are
};

/// A share of the examples; at least one, and never all. What comes of one line or document is alike (turns of a chat
/// repeat what was said before), so all of it is held out or nothing. Lines and documents that have far more examples
/// than are wanted are passed over; where all have, such as in one long text, examples are drawn one by one. Decided by
/// the seed alone.
held_out_examples draw_held_out(const training_data& data, double share, std::uint64_t seed);

}  // namespace troupe
