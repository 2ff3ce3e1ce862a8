#pragma once
#include <array>
#include <optional>

#include "model/train/passes/cpu_train_rows.hpp"
#include "model/train/passes/segment_attention.hpp"

namespace troupe {

/// A layer's attention, between its first rows and what it adds to them.
class cpu_train_attention {
 public:
  explicit cpu_train_attention(cpu_train_rows& rows);

  /// No layer has given gradients to another one's keys.
  void begin_back();
  void forward(const layer_rows& at, float_rows out);
  /// From the gradient of what it gave.
  void backward(const layer_rows& at, const_float_rows given, gradient_target to);

 private:
  /// That later layers read of a layer of each rope, and the gradients that they give back.
  struct shared_rows {
    row_memory k, v, dk, dv;
  };
  segment_attention& attention_of(const layer_rows& at) {
    return config_.is_wide(at.layer) ? *wide_attention_ : attention_;
  }
  segment_attention::input input_of(const layer_rows& at) const;
  /// Where one norm is over all heads: scratch().normed_q and normed_k.
  void normalize_heads(const layer_rows& at);
  void normalize_heads_back(const layer_rows& at);
  /// Keys and values of the last layer of a kind that has them, which others read.
  void share_keys(const layer_rows& at);
  void add_shared_gradients(const layer_rows& at);
  void end_heads(float_rows heads, std::int64_t width) const;
  /// What gates let through of a.mixed; and back, in the gradient of that and in dq.
  void open_gates(const layer_rows& at) const;
  void gates_back(const layer_rows& at, float_rows gradient) const;

  cpu_train_rows& rows_;
  const model_config& config_;
  const scratch_rows& scratch_;
  segment_attention attention_;
  std::optional<segment_attention> wide_attention_;  ///< of layers that config.is_wide
  std::array<shared_rows, 2> shared_;                ///< by layer_rope
};

}  // namespace troupe
