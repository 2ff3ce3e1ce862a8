#pragma once
#include <cstdint>

#include "base/aligned_buffer.hpp"
#include "model/train/data/training_rows.hpp"
#include "model/train/parameters/trained_model.hpp"

namespace troupe {

/// Linear attention, or a state space, within each segment, forward and backward, from what its linear layers made to
/// what the last of them reads. States are never kept: backward makes them again, that of every 32nd row first. One
/// task is a segment and a key head, with all value heads that share it.
class delta_pass {
 public:
  delta_pass(const model_config& config, std::int64_t most_rows, std::int64_t most_positions, int threads);

  /// That are kept of each row.
  static std::int64_t row_floats(const model_config& config) { return 2 * padded_outs(config.delta.value_heads); }
  /// That each thread has.
  static std::int64_t scratch_floats(const model_config& config, std::int64_t most_positions);

  struct input {
    const training_rows& batch;
    const delta_weights& weights;
    const_float_rows qkv, z, b, a;
  };
  /// All but out are overwritten.
  struct gradients {
    const_float_rows out;
    float_rows qkv, z, b, a;
  };
  void forward(const compute& with, const input& in, float_rows out);
  void backward(const compute& with, const input& in, const gradients& result);

 private:
  static constexpr std::int64_t rows_at_once = 32;
  struct scratch {
    float *heads, *convolved, *heads_gradient;  // [positions, heads_stride]: a head of q, of k and of v
    float *out, *out_gradient;                  // [positions, value_dim]
    float* kept;                                // the states before every 32nd row
    float* states;                              // those before and behind each row of some
    float *state_gradient, *sums, *before, *row, *other_row;
    std::int64_t floats = 0;  ///< that all of them take
  };
  struct task {
    const compute& with;
    const train_kernel_table& kernels;
    const input& in;
    std::int64_t first, rows, key_head;
    scratch s;
  };
  /// A head of q, of k or of v: where it is in a row of the linear layer, and in one of `heads`.
  struct head_place {
    std::int64_t column, at, dim;
  };

  /// Without memory all is counted alone.
  static scratch lay_out(const delta_config& config, std::int64_t most_positions, float* memory);
  scratch scratch_of(int thread) const;
  template <class Work>
  void for_tasks(const compute& with, const input& in, Work work) const;
  template <class Work>
  void for_value_heads(const task& t, Work work) const;
  template <class Work>
  void for_rows(const compute& with, const training_rows& batch, Work work) const;
  head_place query_place(const task& t) const {
    return {config_.first_query() + t.key_head * config_.key_dim, 0, config_.key_dim};
  }
  head_place key_place(const task& t) const {
    return {config_.first_key() + t.key_head * config_.key_dim, config_.key_dim, config_.key_dim};
  }
  head_place value_place(std::int64_t head) const {
    return {config_.first_value() + head * config_.value_dim, 2 * config_.key_dim, config_.value_dim};
  }

  void find_shares(const compute& with, const input& in);
  convolution_columns columns_of(const task& t, const head_place& head) const;
  void convolve(const task& t, const head_place& head) const;
  /// The gradient of what `convolve` gave becomes that of the linear layer's output.
  void convolve_back(const task& t, const head_place& head, float_rows to) const;
  void prepare_keys(const task& t) const;
  /// Some rows of a head: `out` of what the state answers.
  void answer(const task& t, std::int64_t head, std::int64_t row, std::int64_t rows, float* state, float* out) const;
  void forward_head(const task& t, std::int64_t head, float_rows out) const;
  void answer_all(const task& t, std::int64_t head) const;
  void answers_back(const task& t, std::int64_t head, const gradients& result) const;
  void states_back(const task& t, std::int64_t head, const gradients& result) const;
  void backward_keys(const task& t, float_rows to) const;

  delta_config config_;
  std::int64_t most_positions_, heads_stride_, state_floats_, share_stride_;
  aligned_buffer<float> rates_, decays_, betas_;  // [share_stride], [rows, share_stride]
  aligned_buffer<float> scratch_;
  std::int64_t scratch_stride_ = 0;
};

}  // namespace troupe
