#pragma once
#include "model/arch/cpu/cpu_products.hpp"

namespace troupe {

/// What a row brings of its token to each layer, beside its embedding: numbers that a gate of the layer lets through.
class cpu_tokens {
 public:
  cpu_tokens(cpu_products& products, const decoder::options& chosen);

  /// A token's own numbers for all layers, and those that its embedding makes, which are normalized layer by layer.
  void bring(const pass& batch, std::span<const std::int32_t> tokens, float_rows embedded);
  void add(const layer_pass& at);

 private:
  cpu_products& products_;
  const model_config& config_;
  column_cut number_columns_, gate_columns_;  ///< all of them
  row_memory numbers_;                        ///< for all layers
  row_memory looked_up_;                      ///< by a thread
  row_memory gates_;                          ///< what a layer lets through
};

}  // namespace troupe
