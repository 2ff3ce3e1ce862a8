#pragma once
#include <cstddef>
#include <vector>

#include "model/arch/loaded_model.hpp"
#include "model/ops/compute.hpp"

namespace troupe::bench {

/// What a step needs: bytes that are read, and weights that are multiplied (the head apart: prefill needs it once).
struct model_work {
  std::size_t bytes = 0;
  std::size_t expert_bytes = 0;  ///< of all experts, of which a row takes `expert_share`; not in `bytes`
  double expert_share = 0;
  double layer_weights = 0;  ///< of experts those that a row takes
  double head_weights = 0;
  /// Keys and values of one position, in all layers that see so many positions.
  struct kv_part {
    double window = 0, bytes = 0;
  };
  std::vector<kv_part> kv;
  double state_bytes = 0;  ///< of one sequence's states, which a step reads and writes

  /// Of the weights that a step of so many rows reads: of experts those that they likely take.
  double bytes_for(double rows) const;
  /// Of the keys and values that the next token of a sequence reads behind so many positions.
  double kv_bytes(double positions) const;
  /// All that a step reads and writes, so many of whose bytes are keys and values.
  double step_bytes(double rows, double logit_rows, double kv_bytes) const;
};
model_work work_of(const loaded_model& model, kv_kind kv);

/// What the machine allows in the same run.
struct machine_limits {
  double read = 0;      ///< bytes a second
  double products = 0;  ///< operations a second, of the weights' kind
};

/// The least time of a step: reading all weights and so many bytes of keys and values, and changing the states of those
/// sequences that get logits; or the products of its rows.
double least_seconds(const model_work& work, const machine_limits& limits, double rows, double logit_rows,
                     double kv_bytes);

}  // namespace troupe::bench
