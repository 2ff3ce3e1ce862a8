// For kernel sources alone: a head in the registers of a warp.
#pragma once
#include "model/ops/cuda/kernel.hpp"
#include "model/ops/cuda/ops.hpp"
#include "model/ops/cuda/train_ops.hpp"

namespace troupe::cuda {

constexpr int head_warps = 4;  ///< of a block, each with a head
constexpr int lane_pairs = most_head_dim / 2 / 32;

/// A lane's angles of a position.
template <int Pairs>
struct lane_angles {
  float cosines[Pairs] = {}, sines[Pairs] = {};

  __device__ lane_angles(const head_angles& angles, std::int32_t position) {
    const std::int64_t first = static_cast<std::int64_t>(position) * angles.pairs;
    for (int j = 0; j < Pairs; ++j) {
      const int place = threadIdx.x % 32 + 32 * j;
      if (place >= angles.pairs) continue;
      cosines[j] = angles.cosines[first + place];
      sines[j] = angles.sines[first + place];
    }
  }
};

/// A head in the registers of a warp: lane l has the pairs l + 32 j. Those that a rotation turns come first; the others
/// share what is behind them in the same way. Without `InPart` all are turned, or none: then only the halves count.
template <int Pairs, bool InPart>
struct held_head {
  float low[Pairs], high[Pairs];
  int dim, half, turned;  ///< half: so many pairs; turned: of those

  __device__ static int place(int j) { return threadIdx.x % 32 + 32 * j; }
  __device__ bool is_turned(int j) const { return place(j) < turned; }
  __device__ int low_at(int j) const { return InPart && !is_turned(j) ? turned + place(j) : place(j); }
  __device__ int high_at(int j) const { return (InPart && is_turned(j) ? turned : half) + place(j); }
  __device__ bool has_low(int j) const { return place(j) < half; }
  __device__ bool has_high(int j) const { return half + place(j) < dim; }

  __device__ held_head() {}
  __device__ held_head(const float* from, int head_dim, int turned_pairs)
      : dim(head_dim), half((head_dim + 1) / 2), turned(turned_pairs) {
    for (int j = 0; j < Pairs; ++j) {
      low[j] = has_low(j) ? from[low_at(j)] : 0.0f;
      high[j] = has_high(j) ? from[high_at(j)] : 0.0f;
    }
  }

  /// f(element, value) for this lane's elements.
  template <class F>
  __device__ void each(F f) const {
    for (int j = 0; j < Pairs; ++j) {
      if (has_low(j)) f(low_at(j), low[j]);
      if (has_high(j)) f(high_at(j), high[j]);
    }
  }

  __device__ void normalize(const float* weight, float eps) {
    float squares = 0;
    each([&](int, float v) { squares = fmaf(v, v, squares); });
    const float factor = 1.0f / sqrtf(warp_sum(squares) / static_cast<float>(dim) + eps);
    for (int j = 0; j < Pairs; ++j) {
      if (has_low(j)) low[j] = (low[j] * factor) * weight[low_at(j)];
      if (has_high(j)) high[j] = (high[j] * factor) * weight[high_at(j)];
    }
  }

  /// From the gradient of what normalize made to that of `x`.
  __device__ void normalize_back(const held_head& x, const float* weight, float eps) {
    float squares = 0, products = 0;
    x.each([&](int, float v) { squares = fmaf(v, v, squares); });
    for (int j = 0; j < Pairs; ++j) {
      if (has_low(j)) low[j] *= weight[low_at(j)], products = fmaf(low[j], x.low[j], products);
      if (has_high(j)) high[j] *= weight[high_at(j)], products = fmaf(high[j], x.high[j], products);
    }
    const auto n = static_cast<float>(dim);
    const float factor = 1.0f / sqrtf(warp_sum(squares) / n + eps);
    const float share = (factor * factor) * (warp_sum(products) / n);
    for (int j = 0; j < Pairs; ++j) {
      low[j] = (low[j] - x.low[j] * share) * factor;
      high[j] = (high[j] - x.high[j] * share) * factor;
    }
  }

  __device__ void rotate(const lane_angles<Pairs>& by) {
    for (int j = 0; j < Pairs; ++j) {
      if (!is_turned(j)) continue;
      const float a = low[j], b = high[j], c = by.cosines[j], s = by.sines[j];
      low[j] = a * c - b * s;
      high[j] = b * c + a * s;
    }
  }

  __device__ float largest() const {
    float most = 0;
    each([&](int, float v) { most = fmaxf(most, fabsf(v)); });
    return warp_max(most);
  }
};
using head_values = held_head<lane_pairs, true>;

/// In training: where a head of an example's first row lies.
inline __device__ float* head_of(const head_rows& rows, const segment& of, int head) {
  return rows.data + of.first * rows.stride + head / rows.share * rows.step;
}

}  // namespace troupe::cuda
