#pragma once
#include <cstdint>
#include <vector>

#include "base/aligned_buffer.hpp"
#include "model/ops/row_memory.hpp"
#include "model/train/data/training_rows.hpp"
#include "model/train/parameters/trained_model.hpp"

namespace troupe {

/// Linear attention, or a state space, within each segment, forward and backward, from what its linear layers made to
/// what the last of them reads. States are never kept: backward makes them again, that of every 32nd row first.
class segment_delta {
 public:
  segment_delta(const model_config& config, std::int64_t most_rows, std::int64_t most_positions, int threads);

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
  /// Of one thread.
  struct scratch {
    row_memory heads, convolved, heads_gradient;  ///< of each position: a head of q, of k and of v
    row_memory out, out_gradient;                 ///< of each position
    row_memory kept;                              ///< the states before every 32nd row
    row_memory states;                            ///< those before and behind each row of some
    row_memory state_gradient, sums, before, row, other_row;

    /// visit(memory, rows, stride).
    template <class Visit>
    void each(const delta_config& config, std::int64_t most_positions, Visit visit);
  };
  class head_task;  // segment_delta_task.hpp

  template <class Work>
  void for_tasks(const compute& with, const input& in, Work work) const;
  template <class Work>
  void for_rows(const compute& with, const training_rows& batch, Work work) const;
  void find_shares(const compute& with, const input& in);
  void shares_back(const compute& with, const input& in, const gradients& result) const;

  delta_config config_;
  std::int64_t share_stride_;
  aligned_buffer<float> rates_;
  row_memory decays_, betas_;     // of each row
  std::vector<scratch> scratch_;  // by thread
};

}  // namespace troupe
