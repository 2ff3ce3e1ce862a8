#pragma once
#include "model/train/passes/cpu_train_rows.hpp"
#include "model/train/passes/segment_attention.hpp"

namespace troupe {

/// Latent attention: queries look for a short row of each position, and heads make their values of what they find.
class cpu_train_latent {
 public:
  explicit cpu_train_latent(cpu_train_rows& rows);

  void forward(const layer_rows& at, float_rows out);
  void backward(const layer_rows& at, const_float_rows given, gradient_target to);

 private:
  /// Of all heads side by side, each head's numbers from `first` on.
  struct head_columns {
    float_rows rows;
    std::int64_t step, first, count;
  };
  segment_attention::input input_of(const layer_rows& at) const;
  /// scratch().normed_k and, where queries are made of a shorter row, normed_down.
  void normalize(const layer_rows& at);
  /// From the gradient of normed rows to that of theirs, in place.
  void normalize_kept_back(const layer_rows& at);
  void normalize_down_back(const layer_rows& at);
  void copy_heads(const head_columns& from, const head_columns& to);
  /// Each head's numbers by its matrix, and back.
  void multiply_heads(const layer_rows& at, trained_matrix head_parts<trained_matrix>::*by, const head_columns& from,
                      const head_columns& to);
  void multiply_heads_back(const layer_rows& at, trained_matrix head_parts<trained_matrix>::*by,
                           const head_columns& from, const head_columns& to);

  cpu_train_rows& rows_;
  const model_config& config_;
  const latent_config& latent_;
  const scratch_rows& scratch_;
  segment_attention attention_;
};

}  // namespace troupe
