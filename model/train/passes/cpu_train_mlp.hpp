#pragma once
#include <optional>

#include "model/train/passes/cpu_train_rows.hpp"
#include "model/train/passes/routed_experts.hpp"

namespace troupe {

/// The second half of a layer: an mlp, a mixture of experts, or both.
class cpu_train_mlp {
 public:
  explicit cpu_train_mlp(cpu_train_rows& rows);

  /// out = in + what it gives, or the norm of that; `out` may be null where only what backward reads is wanted.
  void forward(const layer_rows& at, const_float_rows in, float_rows out);
  /// scratch().gradient, of what it gives, gets what that means for the rows that go in.
  void backward(const layer_rows& at);
  /// Of an mlp that reads what attention reads, its gradient waits for the rest of that.
  void join_waiting() const;

 private:
  /// scratch().active of the mlp that all rows go through.
  void run(const layer_rows& at, const_float_rows normed);
  void run_apart(const layer_rows& at, const_float_rows in, float_rows out);
  /// From the gradient of what down gives to those of gate and up, which take their place. A share that rows take of
  /// the mlp is made of scratch().normed, and scratch().inner gets what its gradient means for that.
  void down_back(const layer_rows& at, const_float_rows given);
  void mixture_back(const layer_rows& at);
  /// Where experts stand apart from the mlp beside them.
  void apart_back(const layer_rows& at);
  void activate(const layer_rows& at) const;
  void activate_back(const layer_rows& at) const;
  /// Where a row takes a share of the mlp beside the experts: active times that; and back, from dactive to itself and
  /// to x, the mlp's input.
  void share_active(const layer_rows& at, const_float_rows x) const;
  void share_back(const layer_rows& at, float_rows dx);

  cpu_train_rows& rows_;
  const model_config& config_;
  const scratch_rows& scratch_;
  std::optional<routed_experts> experts_;
};

}  // namespace troupe
