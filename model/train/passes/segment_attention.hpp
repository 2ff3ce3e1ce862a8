#pragma once
#include <vector>

#include "base/aligned_buffer.hpp"
#include "model/ops/rope.hpp"
#include "model/ops/row_memory.hpp"
#include "model/train/data/training_rows.hpp"
#include "model/train/parameters/trained_model.hpp"

namespace troupe {

/// Attention within each segment, forward and backward. Queries and keys come as their linear layers made them: norms
/// and rotation of the heads belong to this. Probabilities are never kept: backward makes them again, some queries at a
/// time.
class segment_attention {
 public:
  /// Of layers whose heads have these sizes.
  segment_attention(const model_config& config, const head_sizes& sizes, std::int64_t most_positions, int threads);

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
  /// Of one thread. A d before a name: the gradient of that.
  struct scratch {
    row_memory q, k, v, dout, dq, dk, dv;        ///< of each position
    row_memory k_transposed, v_transposed;       ///< positions side by side
    row_memory scores, score_gradients, slopes;  ///< of some queries, for each position
    row_memory raw, raw_gradient;                ///< one row of a head, before its norm

    /// visit(memory, rows, stride).
    template <class Visit>
    void each(std::int64_t head_dim, std::int64_t most_positions, Visit visit);
  };
  /// Of one of the model's ropes, [positions, turned / 2]. The negative sines turn back.
  struct angles {
    std::int64_t turned;  ///< how much of a head
    aligned_buffer<float> cosines, sines, negative_sines;
  };
  class head_task;  // segment_attention_task.hpp

  angles angles_of(const rope_config& rope, std::int64_t turned) const;
  template <class Work>
  void for_tasks(const compute& with, const input& in, Work work) const;
  std::int64_t task_count(const input& in) const;
  /// Of one task, for queries (0) or keys (1); nullptr where none are wanted.
  float* norm_gradient(std::int64_t task, int which) const;
  void add_norm_gradients(const compute& with, const input& in) const;

  model_config config_;
  std::int64_t kv_heads_, most_positions_, dim_;
  float factor_;                  // of the scores in their softmax: 1 where they are capped before
  std::vector<angles> angles_;    // by layer_rope
  aligned_buffer<float> ones_;    // of a norm without weights
  std::vector<scratch> scratch_;  // by thread
  row_memory norm_gradients_;     // two of each task; empty where none are wanted
};

}  // namespace troupe
