#pragma once
#include "model/formats/model_config.hpp"
#include "model/ops/cuda/ops.hpp"

namespace troupe {

/// The rotation of every position on a device, as the host computes it for its own rows. Nothing where the model does
/// not rotate.
class device_angles {
 public:
  device_angles(const model_config& config, std::int64_t positions, const cuda::stream& on);

  const float* cosines() const { return cosines_.data(); }
  const float* sines() const { return sines_.data(); }

 private:
  cuda::device_buffer<float> cosines_, sines_;  ///< [positions, head_dim / 2]
};

}  // namespace troupe
