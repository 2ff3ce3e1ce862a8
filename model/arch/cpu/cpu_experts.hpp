#pragma once
#include <vector>

#include "model/arch/cpu/cpu_products.hpp"
#include "model/arch/expert_routes.hpp"

namespace troupe {

/// The experts of a layer whose mlp is a mixture: each row goes through those that the router chooses for it.
class cpu_experts {
 public:
  cpu_experts(cpu_products& products, const decoder::options& chosen);

  /// Adds what they make to the rows, and leaves the normalized ones in products.normed() for the mlp beside them.
  void mix(const layer_pass& at);
  /// How much a row takes of that mlp, once its experts are mixed.
  float share_of_mlp(int row) const { return *shared_shares_.row(row); }

  // Where experts stand apart from the mlp beside them.
  /// Leaves what they make aside, normalized.
  void mix_apart(const layer_pass& at);
  /// Adds it to what the mlp made, which lies in products.normed().
  void join(const layer_pass& at);

 private:
  void run(const layer_weights& weights, float_rows normed);
  /// make_row(place) makes the input at each place, as floats in `x` and, where the experts ask for it, as integers.
  template <class MakeRow>
  void prepare_places(const layer_weights& weights, float_rows x, std::int64_t ins, MakeRow make_row);
  /// Of the rows of each group with one of its expert's matrices.
  void add_group_jobs(const layer_weights& weights, matrix_view expert_weights::*of, const float* expert_biases::*bias,
                      float_rows x, float_rows y);
  void add_visits(float_rows hidden, int rows);

  cpu_products& products_;
  const model_config& config_;
  expert_routes routes_;
  row_memory scores_;         ///< the router's, of as many rows as are run together
  row_memory places_;         ///< of experts' inputs, and of what they make
  row_memory gate_, up_;      ///< by place; gate_: of gated models
  row_memory apart_;          ///< what experts apart from an mlp make
  row_memory shared_shares_;  ///< of which the first counts
  std::vector<matmul_args> jobs_;
};

}  // namespace troupe
