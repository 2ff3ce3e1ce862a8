#pragma once
#include "model/train/passes/cpu_train_rows.hpp"

namespace troupe {

/// What rows bring of their tokens to the layers, and the factors of what leaves a layer.
class cpu_train_tokens {
 public:
  explicit cpu_train_tokens(cpu_train_rows& rows) : rows_(rows), config_(rows.config()), scratch_(rows.scratch()) {}

  void bring(const training_rows& batch, const_float_rows embedded);
  /// out = what leaves the layer, of what its mlp made of the rows; `out` may be null.
  void forward(const layer_rows& at, const_float_rows fed, float_rows out);
  /// scratch().gradient, of what leaves the layer, becomes that of what its mlp made of the rows.
  void backward(const layer_rows& at);

 private:
  const float* numbers_of(const layer_rows& at, std::int64_t row) const {
    return scratch_.token_numbers.row(row) + at.layer * config_.layer_embedding;
  }
  void let_through(const layer_rows& at) const;
  void multiply(float_rows rows, const float* factor) const;

  cpu_train_rows& rows_;
  const model_config& config_;
  const scratch_rows& scratch_;
};

}  // namespace troupe
