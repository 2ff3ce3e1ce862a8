#pragma once
#include "model/train/passes/segment_delta.hpp"

namespace troupe {

/// A segment and a key head, with all value heads that share it.
class segment_delta::head_task {
 public:
  head_task(const segment_delta& all, const compute& with, const input& in, std::int64_t index, const scratch& s);

  void forward(float_rows out) const;
  void backward(const gradients& result) const;

 private:
  /// A head of q, of k or of v: where it is in a row of the linear layer, and in one of `heads`.
  struct head_place {
    std::int64_t column, at, dim;
  };
  head_place query_place() const { return {config_.first_query() + key_head_ * config_.key_dim, 0, config_.key_dim}; }
  head_place key_place() const {
    return {config_.first_key() + key_head_ * config_.key_dim, config_.key_dim, config_.key_dim};
  }
  head_place value_place(std::int64_t head) const {
    return {config_.first_value() + head * config_.value_dim, 2 * config_.key_dim, config_.value_dim};
  }

  template <class Work>
  void for_value_heads(Work work) const;
  convolution_columns columns_of(const head_place& head) const;
  void convolve(const head_place& head) const;
  /// The gradient of what `convolve` gave becomes that of the linear layer's output.
  void convolve_back(const head_place& head, float_rows to) const;
  void prepare_keys() const;
  /// Some rows of a head: `out` of what the state answers.
  void answer(std::int64_t head, std::int64_t row, std::int64_t rows, float* state, float* out) const;
  void forward_head(std::int64_t head, float_rows out) const;
  void answer_all(std::int64_t head) const;
  void answers_back(std::int64_t head, const gradients& result) const;
  void states_back(std::int64_t head, const gradients& result) const;
  void row_back(std::int64_t head, std::int64_t row, const float* state, const gradients& result) const;
  void backward_keys(float_rows to) const;

  const segment_delta& all_;
  const delta_config& config_;
  const kernel_table& kernels_;
  const train_kernel_table& train_kernels_;
  const input& in_;
  const scratch& s_;
  const std::int64_t key_head_;
  std::int64_t first_, rows_;  // of the segment
};

}  // namespace troupe
