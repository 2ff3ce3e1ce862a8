#pragma once
#include <cstdint>
#include <vector>

#include "model/arch/loaded_model.hpp"
#include "model/ops/cuda/experts.hpp"

namespace troupe {

/// What the experts of some layers need on a device besides their weights: tables of who goes where, and memory for
/// what is made at places. Nothing waits for the host.
class device_experts {
 public:
  device_experts() = default;
  /// `layers` as device_weights has them. At most so many rows go through experts together.
  device_experts(const model_config& config, const std::vector<layer_weights>& layers, int rows_together);

  struct mixed_rows {
    int rows = 0;
    const std::int32_t* positions = nullptr;  ///< [rows]; below 0: the row only fills the pass up
    float_rows normed = {};
    cuda::row_codes codes = {};  ///< of normed, as codes_for() says
    float_rows hidden = {};
  };
  /// What a layer's experts read of its normed rows, besides their floats.
  static cuda::row_codes codes_for(const layer_weights& weights, const cuda::coded_rows& codes);
  /// hidden += what the layer's experts make of the rows.
  void mix(const cuda::stream& on, const layer_weights& weights, const mixed_rows& all) const;

  /// Of a pass of so many rows at most: more of them take more memory, with fewer the experts are read more often.
  static int rows_together(const model_config& config, int most_rows);

 private:
  struct config_of_mixture {
    std::int64_t hidden, ffn, experts;
    bool whole_shares;
  };

  void mix_some(const cuda::stream& on, const layer_weights& weights, const mixed_rows& some) const;
  void run(const cuda::stream& on, const layer_weights& weights, const cuda::visit_tables& visits,
           const mixed_rows& some) const;

  config_of_mixture config_{};
  int rows_together_ = 0;
  cuda::visit_memory visits_;
  cuda::coded_rows codes_;  ///< at places: of what goes in, then of what the activation makes
  cuda::device_buffer<float> scores_, gate_, up_, made_;
};

}  // namespace troupe
