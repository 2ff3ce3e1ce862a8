#pragma once
#include "model/train/passes/cpu_train_rows.hpp"
#include "model/train/passes/segment_delta.hpp"

namespace troupe {

/// A layer of linear attention, or of a state space.
class cpu_train_delta {
 public:
  explicit cpu_train_delta(cpu_train_rows& rows);

  void forward(const layer_rows& at, float_rows out);
  void backward(const layer_rows& at, const_float_rows given, gradient_target to);

 private:
  static segment_delta::input input_of(const layer_rows& at);
  float_rows answers(const layer_rows& at);
  float_rows answers_back(const layer_rows& at, float_rows given);

  cpu_train_rows& rows_;
  const delta_config& config_;
  const scratch_rows& scratch_;
  segment_delta delta_;
};

}  // namespace troupe
