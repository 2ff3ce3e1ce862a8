#include "model/arch/token_numbers.hpp"

#include <algorithm>
#include <cmath>

namespace troupe {

void join_token_numbers(const kernel_table& kernels, const model_config& config, const float* norm, const float* own,
                        float* made) {
  const std::int64_t width = config.layer_embedding, all = config.layers * width;
  // The class divides what the embedding makes by the root of `hidden` first: so much less is added to its squares.
  const float eps = config.norm_eps * static_cast<float>(config.hidden);
  const float factor = std::sqrt(static_cast<float>(width)), half = std::sqrt(0.5f);
  for (std::int64_t at = 0; at < all; at += width) kernels.rms_norm(made + at, norm, width, eps, made + at);
  std::transform(made, made + all, own, made, [&](float a, float b) { return (a + b * factor) * half; });
}

}  // namespace troupe
