#pragma once
#include <array>

#include "model/formats/model_config.hpp"
#include "model/ops/cuda/ops.hpp"

namespace troupe {

/// The rotation of every position on a device, as the host computes it for its own rows, by each rope that some layer
/// of the model has.
class device_angles {
 public:
  /// `context`: how many positions a sequence that is served has at most, for longrope.
  device_angles(const model_config& config, std::int64_t positions, std::int64_t context, const cuda::stream& on);

  /// Nothing turns where the layer does not turn its heads.
  cuda::head_angles of(layer_rope rope) const;

 private:
  struct table {
    cuda::device_buffer<float> cosines, sines;  ///< [positions, pairs]
  };
  int pairs_;
  std::array<table, 2> tables_;  ///< by layer_rope
};

}  // namespace troupe
