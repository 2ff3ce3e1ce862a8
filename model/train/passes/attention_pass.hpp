#pragma once
#include <vector>

#include "base/aligned_buffer.hpp"
#include "model/ops/rope.hpp"
#include "model/train/data/training_rows.hpp"
#include "model/train/parameters/trained_model.hpp"

namespace troupe {

/// Attention within each segment, forward and backward. Queries and keys come as their linear layers made them: norms
/// and rotation of the heads belong to this. Probabilities are never kept: backward makes them again, some queries at a
/// time. One task is a segment and a kv head, with all query heads that share it.
class attention_pass {
 public:
  /// Of layers whose heads have these sizes.
  attention_pass(const model_config& config, const head_sizes& sizes, std::int64_t most_positions, int threads);

  /// That each thread has, for the widest heads.
  static std::int64_t scratch_floats(const model_config& config, std::int64_t most_positions);

  struct input {
    const training_rows& batch;
    const trained_layer& layer;
    const trained_norm& k_norm;  ///< of the layer whose keys these are
    std::int64_t window;
    layer_rope rope;
    const_float_rows q, k, v;  ///< v may be k, where values are keys before their norm
  };
  /// q, k and v are overwritten.
  struct gradients {
    const_float_rows out;
    float_rows q, k, v;
  };
  void forward(const compute& with, const input& in, float_rows out) const;
  void backward(const compute& with, const input& in, const gradients& result);

 private:
  static constexpr std::int64_t queries_at_once = 48;
  struct scratch {
    float *k, *v, *k_transposed, *v_transposed, *q, *dout, *dq, *dk, *dv, *scores, *score_gradients, *slopes, *row,
        *row_gradient;
    std::int64_t floats = 0;  ///< that all of them take
  };
  struct task {
    const compute& with;
    const train_kernel_table& kernels;
    const input& in;
    std::int64_t index, first, rows, kv_head;
    scratch s;
  };
  /// Queries or keys as their linear layer made them, and what backward makes for that layer.
  struct placed_heads {
    const trained_norm& norm;
    const_float_rows raw;
    float_rows gradient;
    float* norm_gradient;  // or nullptr
  };
  /// Of one of the model's ropes, [positions, turned / 2]. The negative sines turn back.
  struct angles {
    std::int64_t turned;  ///< how much of a head
    aligned_buffer<float> cosines, sines, negative_sines;
  };
  struct span_of_keys {
    std::int64_t from, to;  // multiples of 16
  };

  /// For heads of so many numbers. Without memory all is counted alone.
  static scratch lay_out(std::int64_t head_dim, std::int64_t most_positions, float* memory);
  angles angles_of(const rope_config& rope, std::int64_t turned) const;
  template <class Work>
  void for_tasks(const compute& with, const input& in, Work work) const;
  template <class Work>
  void for_heads(const task& t, Work work) const;
  std::int64_t task_count(const input& in) const;
  /// Of one task, for queries (0) or keys (1); nullptr where none are wanted.
  float* norm_gradient(std::int64_t task, int which) const;
  scratch scratch_of(int thread) const;
  void gather(const task& t, const_float_rows from, std::int64_t head, float* to) const;
  void place(const task& t, const trained_norm& norm, float* head) const;
  void turn(const task& t, std::int64_t position, float* head, bool back) const;
  /// The gradient of placed heads goes to that of the linear layer's output.
  void scatter_back(const task& t, std::int64_t head, float* gradients, const placed_heads& to) const;
  /// Values that are normalized, without weights; and the gradient of that.
  void place_values(const task& t, float* values) const;
  void scatter_values_back(const task& t, float_rows to) const;
  void prepare_keys(const task& t, bool backward) const;
  static std::int64_t first_key(const task& t, std::int64_t query);
  span_of_keys keys_of(const task& t, std::int64_t query, std::int64_t count) const;
  void probabilities(const task& t, std::int64_t head, std::int64_t query, std::int64_t count, span_of_keys keys) const;
  void forward_head(const task& t, std::int64_t head, float_rows out) const;
  void backward_head(const task& t, std::int64_t head, const gradients& result) const;
  void backward_queries(const task& t, std::int64_t head, std::int64_t query, std::int64_t count) const;
  void backward_keys(const task& t, const gradients& result) const;
  void add_norm_gradients(const compute& with, const input& in) const;

  model_config config_;
  std::int64_t kv_heads_, most_positions_, dim_, dim_stride_, transposed_stride_;
  float factor_;                // of the scores in their softmax: 1 where they are capped before
  std::vector<angles> angles_;  // by layer_rope
  aligned_buffer<float> ones_;  // of a norm without weights
  aligned_buffer<float> scratch_;
  std::int64_t scratch_stride_ = 0;
  aligned_buffer<float> norm_gradients_;  // [tasks][2][dim_stride]; empty where none are wanted
};

}  // namespace troupe
