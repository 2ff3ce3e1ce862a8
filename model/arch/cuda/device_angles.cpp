#include "model/arch/cuda/device_angles.hpp"

#include <vector>

#include "model/ops/rope.hpp"

namespace troupe {

device_angles::device_angles(const model_config& config, std::int64_t positions, const cuda::stream& on) {
  if (config.position != position_kind::rotary) return;
  const std::int64_t half = config.head_dim / 2;
  const auto size = static_cast<std::size_t>(positions * half);
  const rope_angles angles(config, config.rope, positions);
  std::vector<float> cosines(size), sines(size);
  for (std::int64_t i = 0; i < positions; ++i) angles.at(i, cosines.data() + i * half, sines.data() + i * half);
  cosines_ = cuda::device_buffer<float>(size);
  sines_ = cuda::device_buffer<float>(size);
  cuda::copy(cosines_.data(), cosines.data(), size, on);
  cuda::copy(sines_.data(), sines.data(), size, on);
  on.wait();
}

}  // namespace troupe
