#pragma once
#include <cstdint>

namespace troupe {

/// Which elements of a LoRA's input are dropped: decided by a counter, so that backward, a resumed run and any number
/// of threads see the same mask.
struct dropout_key {
  float probability = 0;
  std::uint64_t seed = 0;
  std::uint32_t pass = 0;    ///< micro-batches so far
  std::uint32_t stream = 0;  ///< of the adapted module

  dropout_key of_stream(std::uint32_t which) const { return {probability, seed, pass, which}; }
};

}  // namespace troupe
