#include "model/arch/cuda/device_angles.hpp"

#include <vector>

#include "base/to_size.hpp"
#include "model/ops/rope.hpp"

namespace troupe {

device_angles::device_angles(const model_config& config, std::int64_t positions, std::int64_t context,
                             const cuda::stream& on)
    : pairs_(static_cast<int>(config.turned_dim() / 2)) {
  const auto size = to_size(positions * pairs_);
  std::vector<float> cosines(size), sines(size);
  for (std::int64_t layer = 0; layer < config.layers; ++layer) {
    const layer_rope rope = config.rope_of(layer);
    if (rope == layer_rope::none) continue;
    table& to = tables_[to_size(rope)];
    if (to.cosines.size() > 0) continue;
    const rope_angles angles(rope == layer_rope::local ? config.local_rope : config.rope, config.turned_dim(), context);
    for (std::int64_t i = 0; i < positions; ++i) angles.at(i, cosines.data() + i * pairs_, sines.data() + i * pairs_);
    to = {cuda::device_buffer<float>(size), cuda::device_buffer<float>(size)};
    cuda::copy(to.cosines.data(), cosines.data(), size, on);
    cuda::copy(to.sines.data(), sines.data(), size, on);
    on.wait();
  }
}

cuda::head_angles device_angles::of(layer_rope rope) const {
  if (rope == layer_rope::none) return {};
  const table& own = tables_[to_size(rope)];
  return {own.cosines.data(), own.sines.data(), pairs_};
}

}  // namespace troupe
