#pragma once
#include "model/arch/cpu/cpu_products.hpp"
#include "model/arch/state_storage.hpp"

namespace troupe {

/// A layer of linear attention or of a state space: each row changes its sequence's state, and is answered by it.
class cpu_delta {
 public:
  cpu_delta(cpu_products& products, const state_storage& states, const decoder::options& chosen);
  void run(const layer_pass& at);

 private:
  void convolve_part(const layer_pass& at, const pass_sequence& sequence, std::int64_t part) const;
  void find_shares(const layer_pass& at, const pass_sequence& sequence) const;
  void run_head(const layer_pass& at, const pass_sequence& sequence, std::int64_t head) const;
  float* rates_of(std::int64_t layer) const { return rates_.row(layer - first_layer_); }

  cpu_products& products_;
  const state_storage& states_;
  const delta_config& config_;
  std::int64_t first_layer_;
  column_cut qkv_columns_, value_columns_, share_columns_;  ///< all of them
  row_memory qkv_, z_, out_;
  row_memory a_, b_;  ///< of each value head, what it decays and learns by
  row_memory rates_;  ///< of decay, of each layer
};

}  // namespace troupe
