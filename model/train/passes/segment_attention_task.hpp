#pragma once
#include "model/train/passes/segment_attention.hpp"

namespace troupe {

/// A segment and a kv head, with all query heads that share it.
class segment_attention::head_task {
 public:
  head_task(const segment_attention& all, const compute& with, const input& in, std::int64_t index, const scratch& s);

  void forward(float_rows out) const;
  void backward(const gradients& result) const;

 private:
  /// Queries or keys as their linear layer made them, and what backward makes for that layer.
  struct placed_heads {
    const trained_norm& norm;
    const_float_rows raw;
    float_rows gradient;
    float* norm_gradient;  // or nullptr
  };
  struct span_of_keys {
    std::int64_t from, to;  // multiples of 16

    std::int64_t count() const { return to - from; }
  };

  void gather(const_float_rows from, std::int64_t head, float_rows to) const;
  void place(const trained_norm& norm, float_rows heads) const;
  void turn(std::int64_t position, float* row, bool back) const;
  /// The gradient of placed heads goes to that of the linear layer's output.
  void scatter_back(std::int64_t head, float_rows gradients, const placed_heads& to) const;
  /// Values that are normalized, without weights; and the gradient of that.
  void place_values() const;
  void scatter_values_back(float_rows to) const;
  const float* norm_back(const float* raw, const float* weight, const float* gradient, float* weight_gradient) const;
  void prepare_keys(bool backward) const;
  std::int64_t first_key(std::int64_t query) const;
  span_of_keys keys_of(std::int64_t query, std::int64_t count) const;
  void probabilities(std::int64_t head, std::int64_t query, std::int64_t count, span_of_keys keys) const;
  template <class Work>
  void for_heads(Work work) const;
  void forward_head(std::int64_t head, float_rows out) const;
  void backward_head(std::int64_t head, const gradients& result) const;
  void backward_queries(std::int64_t head, std::int64_t query, std::int64_t count) const;
  void backward_keys(const gradients& result) const;

  const segment_attention& all_;
  const model_config& config_;
  const kernel_table& kernels_;
  const train_kernel_table& train_kernels_;
  const input& in_;
  const scratch& s_;
  const std::int64_t dim_, index_, kv_head_;
  std::int64_t first_, rows_, padded_rows_;  // of the segment
};

}  // namespace troupe
