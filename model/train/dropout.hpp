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
};

/// out = x where it is kept, over 1 - probability; 0 elsewhere. One row, n elements.
void apply_dropout(const dropout_key& key, std::int64_t row, const float* x, std::int64_t n, float* out);

}  // namespace troupe
