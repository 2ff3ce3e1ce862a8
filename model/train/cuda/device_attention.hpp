#pragma once
#include <algorithm>

#include "model/arch/cuda/device_angles.hpp"
#include "model/formats/model_config.hpp"
#include "model/train/cuda/device_rows.hpp"

namespace troupe {

/// Attention within each segment on a device, as segment_attention has it on the processor: norms and rotation of the
/// heads belong to it, and backward makes the probabilities again. Scores are there for some heads at a time.
class device_attention {
 public:
  /// `rounded`: products are made of bf16, on tensor cores.
  device_attention(const model_config& config, std::int64_t most_rows, std::int64_t most_positions, bool rounded,
                   const cuda::stream& on);

  /// One layer's. Queries, keys and values as the linear layers made them.
  struct input {
    const device_rows& rows;
    std::int64_t window = 0;
    layer_rope rope = layer_rope::global;
    const float *q_norm = nullptr, *k_norm = nullptr;  ///< of each head; null: none
    float_rows q, k, v;
  };
  void forward(const cuda::stream& on, const input& in, float_rows out) const;
  /// dq, dk and dv are overwritten.
  void backward(const cuda::stream& on, const input& in, float_rows dout, float_rows dq, float_rows dk,
                float_rows dv) const;

 private:
  /// Heads of keys and values, [first, first + count), and the heads of queries that share them.
  struct head_range {
    std::int64_t first, count;
  };

  cuda::turn_args turned(const input& in, bool are_keys) const;
  void turn(const cuda::stream& on, const input& in) const;
  template <class Work>
  void for_heads(Work work) const {
    for (std::int64_t first = 0; first < kv_heads_; first += heads_at_once_)
      work(head_range{first, std::min(heads_at_once_, kv_heads_ - first)});
  }
  void probabilities(const cuda::stream& on, const input& in, head_range heads) const;
  void multiply(const cuda::stream& on, const cuda::head_product& product) const;
  void multiply(const cuda::stream& on, const input& in, head_range heads, cuda::head_shape shape, cuda::head_rows a,
                cuda::head_rows b, cuda::head_rows c) const;
  /// For each head of keys or values, over the query heads that share it in order.
  void gather(const cuda::stream& on, const input& in, head_range heads, float* scores, float_rows from,
              float_rows to) const;
  cuda::softmax_args softmax_of(const input& in, head_range heads) const;
  cuda::head_rows queries(float_rows rows, head_range heads) const;
  cuda::head_rows keys(float_rows rows, head_range heads) const;
  cuda::head_rows scores_in(const cuda::device_buffer<float>& buffer) const;
  float_rows turned_q() const;
  float_rows turned_k() const;

  model_config config_;
  bool rounded_;
  std::int64_t dim_, kv_heads_, group_;
  std::int64_t score_stride_, score_step_;  ///< from query to query, from head to head
  std::int64_t heads_at_once_;              ///< of keys and values
  cuda::device_buffer<float> q_, k_;        ///< turned
  cuda::device_buffer<float> scores_, score_gradients_;
  cuda::device_buffer<float> slopes_;  ///< of capped scores
  device_angles angles_;
};

}  // namespace troupe
