#pragma once
#include "model/arch/cpu/cpu_products.hpp"
#include "model/arch/state_storage.hpp"

namespace troupe {

/// A layer of short convolutions: each row sees a few before it, of which the sequence's state is made.
class cpu_convolution {
 public:
  cpu_convolution(cpu_products& products, const state_storage& states, const decoder::options& chosen);
  void run(const layer_pass& at);

 private:
  void convolve(const layer_pass& at, const pass_sequence& sequence, std::int64_t first, std::int64_t columns) const;

  cpu_products& products_;
  const state_storage& states_;
  column_cut in_columns_;  ///< all of them
  row_memory in_, out_;    ///< in_: b, c and x
};

}  // namespace troupe
