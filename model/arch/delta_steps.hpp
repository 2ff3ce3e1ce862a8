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

/// Those of the layer's kind.
struct delta_kernels {
  decltype(kernel_table::delta_rule) answer;
  decltype(kernel_table::delta_shares) shares;
};
inline delta_kernels delta_kernels_of(const kernel_table& kernels, const delta_config& config) {
  return config.is_state_space ? delta_kernels{kernels.state_space, kernels.state_space_shares}
                               : delta_kernels{kernels.delta_rule, kernels.delta_shares};
}

/// Of what a state space answers, weighed by z already.
inline void normalize_groups(const kernel_table& kernels, const delta_config& config, const float* weights,
                             const float* from, float* to) {
  const std::int64_t size = config.norm_size();
  for (std::int64_t i = 0; i < config.values(); i += size)
    kernels.rms_norm(from + i, weights + i, size, config.norm_eps, to + i);
}

}  // namespace troupe
