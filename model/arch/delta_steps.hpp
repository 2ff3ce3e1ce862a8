#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>

#include "model/formats/model_config.hpp"
#include "model/ops/kernels.hpp"

namespace troupe {

/// What the squares of linear attention's keys and queries are added to before the root.
constexpr float unit_eps = 1e-6f;

/// What a head's queries are multiplied by, once they are of length one.
inline float delta_query_factor(const delta_config& config) {
  return 1 / std::sqrt(static_cast<float>(config.key_dim));
}

/// The rates of decay that a layer's weights mean. n: padded to 16.
inline void find_rates(const kernel_table& kernels, const delta_config& config, const float* decay, std::int64_t n,
                       float* rates) {
  if (config.has_rates)
    std::transform(decay, decay + n, rates, [](float minus_rate) { return -minus_rate; });
  else
    kernels.exponentials(decay, n, 0, rates);
}

}  // namespace troupe
