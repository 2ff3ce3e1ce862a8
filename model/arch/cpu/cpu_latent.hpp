#pragma once
#include <vector>

#include "model/arch/cpu/cpu_products.hpp"

namespace troupe {

/// Latent attention: what is kept of a row is short, and each head has matrices that bring its queries to that form and
/// what it mixes from it.
class cpu_latent {
 public:
  cpu_latent(cpu_products& products, const decoder::options& chosen);

  /// The row that is kept, and the queries that look for it.
  void project(const layer_pass& at, const linear_product& kept, float_rows queries);
  void normalize_kept(const layer_weights& weights, float* row, float* scratch) const;
  /// What heads make of the rows that they mixed.
  float_rows values(const layer_pass& at, float_rows mixed);

 private:
  /// Each head's numbers of all rows: the parts of a row lie a step apart.
  struct head_rows {
    float_rows rows;
    std::int64_t step;
  };
  void place_queries(const layer_pass& at, float_rows placed);
  /// By each head's matrix.
  void multiply_heads(const layer_pass& at, matrix_view head_parts<matrix_view>::*by, head_rows from, head_rows to);

  cpu_products& products_;
  const model_config& config_;
  const latent_config& latent_;
  row_memory down_, queries_, values_;  ///< all heads side by side
  row_memory places_;                   ///< each head's part of some rows, one head after the other
  std::vector<matmul_args> jobs_;
};

}  // namespace troupe
