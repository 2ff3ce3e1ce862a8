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

  __device__ lane_angles() {}
  __device__ lane_angles(const float* cosines_, const float* sines_, int half) {
    for (int j = 0; j < Pairs; ++j) {
      const int place = threadIdx.x % 32 + 32 * j;
      if (place >= half) continue;
      cosines[j] = cosines_[place];
      sines[j] = sines_[place];
    }
  }
};

/// A head in the registers of a warp: lane l has elements l + 32 j of both halves, which are what a rotation turns.
template <int Pairs>
struct held_head {
  float low[Pairs], high[Pairs];
  int dim, half;

  __device__ static int place(int j) { return threadIdx.x % 32 + 32 * j; }
  __device__ bool has_low(int j) const { return place(j) < half; }
  __device__ bool has_high(int j) const { return half + place(j) < dim; }

  __device__ held_head() {}
  __device__ held_head(const float* from, int head_dim) : dim(head_dim), half((head_dim + 1) / 2) {
    for (int j = 0; j < Pairs; ++j) {
      low[j] = has_low(j) ? from[place(j)] : 0.0f;
      high[j] = has_high(j) ? from[half + place(j)] : 0.0f;
    }
  }

  /// f(element, value) for this lane's elements.
  template <class F>
  __device__ void each(F f) const {
    for (int j = 0; j < Pairs; ++j) {
      if (has_low(j)) f(place(j), low[j]);
      if (has_high(j)) f(half + place(j), high[j]);
    }
  }

  __device__ void normalize(const float* weight, float eps) {
    float squares = 0;
    each([&](int, float v) { squares = fmaf(v, v, squares); });
    const float factor = 1.0f / sqrtf(warp_sum(squares) / static_cast<float>(dim) + eps);
    for (int j = 0; j < Pairs; ++j) {
      if (has_low(j)) low[j] = (low[j] * factor) * weight[place(j)];
      if (has_high(j)) high[j] = (high[j] * factor) * weight[half + place(j)];
    }
  }

  /// From the gradient of what normalize made to that of `x`.
  __device__ void normalize_back(const held_head& x, const float* weight, float eps) {
    float squares = 0, products = 0;
    x.each([&](int, float v) { squares = fmaf(v, v, squares); });
    for (int j = 0; j < Pairs; ++j) {
      if (has_low(j)) low[j] *= weight[place(j)], products = fmaf(low[j], x.low[j], products);
      if (has_high(j)) high[j] *= weight[half + place(j)], products = fmaf(high[j], x.high[j], products);
    }
    const auto n = static_cast<float>(dim);
    const float factor = 1.0f / sqrtf(warp_sum(squares) / n + eps);
    const float share = (factor * factor) * (warp_sum(products) / n);
    for (int j = 0; j < Pairs; ++j) {
      low[j] = (low[j] - x.low[j] * share) * factor;
      high[j] = (high[j] - x.high[j] * share) * factor;
    }
  }

  /// By the angles, or with direction -1 back.
  __device__ void rotate(const float* cosines, const float* sines, float direction) {
    lane_angles<Pairs> by(cosines, sines, half);
    for (float& sine : by.sines) sine *= direction;
    rotate(by);
  }
  __device__ void rotate(const lane_angles<Pairs>& by) {
    for (int j = 0; j < Pairs; ++j) {
      if (!has_low(j)) continue;
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
using head_values = held_head<lane_pairs>;

/// In training: where a head of an example's first row lies.
inline __device__ float* head_of(const head_rows& rows, const segment& of, int head) {
  return rows.data + of.first * rows.stride + head / rows.share * rows.step;
}

}  // namespace troupe::cuda
