#pragma once
#include <vector>

#include "model/arch/decoder.hpp"
#include "model/ops/rope.hpp"
#include "model/ops/row_memory.hpp"

namespace troupe {

/// How the rows of a pass turn their heads: by their positions, and by each of the model's ropes.
class row_angles {
 public:
  row_angles(const model_config& config, const decoder::options& chosen);

  void begin(const pass& batch, thread_pool& pool);
  /// `count` heads of a row, each of `dim`, as layers with this rope do.
  void turn(const kernel_table& kernels, layer_rope by, std::int64_t row, float* heads, std::int64_t count,
            std::int64_t dim) const;

 private:
  struct turned_rows {
    std::int64_t dim;  ///< how much of a head turns
    rope_angles angles;
    row_memory cosines, sines;
  };
  std::vector<turned_rows> ropes_;  ///< by layer_rope
};

}  // namespace troupe
