#pragma once
#include <cstdint>

#include "model/formats/model_config.hpp"
#include "model/ops/kernels.hpp"

namespace troupe {

/// Rows of a pass whose heads' parts are multiplied together, by each head's matrix: more take more memory.
constexpr int latent_rows_together = 64;

/// The parts of so many rows, each head's in whole tiles.
inline std::int64_t most_latent_places(const model_config& config) {
  return config.is_latent() ? config.heads * (latent_rows_together + tall_tile.rows) : 0;
}

}  // namespace troupe
