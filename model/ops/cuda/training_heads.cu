// Heads in training, forward and back: a warp for a head of a row.
#include "model/ops/cuda/activations.hpp"
#include "model/ops/cuda/heads.hpp"
#include "model/ops/cuda/train_ops.hpp"

namespace troupe::cuda {
namespace {

/// Whose head a warp has.
struct own_head {
  int row, head;

  __device__ own_head() : row(blockIdx.x), head(blockIdx.y * head_warps + threadIdx.x / 32) {}
  __device__ float* at(const float_rows& rows, int dim) const { return rows.data + row * rows.stride + head * dim; }
};

/// By the angles, or with direction -1 back.
__device__ void rotate(head_values& v, const turn_args& a, int row, float direction) {
  lane_angles<lane_pairs> by(a.angles, a.positions[row]);
  for (float& sine : by.sines) sine *= direction;
  v.rotate(by);
}

__global__ void turn_rows(turn_args a) {
  const own_head own;
  if (own.head >= a.heads) return;
  head_values v(own.at(a.x, a.dim), a.dim, a.angles.pairs);
  if (a.norm) v.normalize(a.norm, a.eps);
  rotate(v, a, own.row, 1);
  float* out = own.at(a.out, a.dim);
  v.each([&](int d, float value) { out[d] = value; });
}

__global__ void turn_rows_back(turn_args a) {
  const own_head own;
  if (own.head >= a.heads) return;
  float* out = own.at(a.out, a.dim);
  head_values gradient(out, a.dim, a.angles.pairs);
  rotate(gradient, a, own.row, -1);
  if (a.norm) gradient.normalize_back(head_values(own.at(a.x, a.dim), a.dim, a.angles.pairs), a.norm, a.eps);
  gradient.each([&](int d, float value) { out[d] = value; });
}

// ---- scores ----

constexpr int softmax_warps = 8, softmax_threads = softmax_warps * 32;

/// A query's keys: it sees [from, to) of those before `end`.
struct query_keys {
  int row = blockIdx.x, head = blockIdx.y * softmax_warps + threadIdx.x / 32, lane = threadIdx.x % 32;
  int from = 0, to = 0, end = 0;

  __device__ explicit query_keys(const softmax_args& a) {
    to = a.positions[row] + 1;
    from = a.window > 0 && to > a.window ? to - static_cast<int>(a.window) : 0;
    end = (to + 63) / 64 * 64;
  }
  __device__ float* at(const head_rows& rows) const { return rows.data + row * rows.stride + head * rows.step; }
  __device__ bool sees(int key) const { return key >= from && key < to; }
};

/// Of the scores that the warp's query sees.
__device__ float largest_score(const query_keys& own, const float* scores, float factor) {
  float largest = minus_infinity;
  for (int key = own.from + own.lane; key < own.to; key += 32) largest = fmaxf(largest, scores[key] * factor);
  return warp_max(largest);
}

__global__ void cap_score_rows(softmax_args a, soft_cap cap) {
  const query_keys own(a);
  if (own.head >= a.heads) return;
  float *scores = own.at(a.scores), *slopes = own.at(a.slopes);
  for (int key = own.from + own.lane; key < own.to; key += 32) {
    scores[key] = cap(scores[key] * a.factor);
    slopes[key] = cap.slope(scores[key]) * a.factor;
  }
}

/// How scores change with what they are made of.
__device__ float slope_of(const softmax_args& a, const query_keys& own, int key) {
  return a.slopes.data ? own.at(a.slopes)[key] : a.factor;
}

__global__ void softmax_rows(softmax_args a) {
  const query_keys own(a);
  if (own.head >= a.heads) return;
  float* scores = own.at(a.scores);
  const float largest = largest_score(own, scores, a.factor);
  float total = 0;
  for (int key = own.from + own.lane; key < own.to; key += 32) {
    scores[key] = expf(scores[key] * a.factor - largest);
    total += scores[key];
  }
  const float share = 1.0f / warp_sum(total);
  __syncwarp();
  for (int key = own.lane; key < own.end; key += 32) scores[key] = own.sees(key) ? scores[key] * share : 0.0f;
}

__global__ void softmax_back_rows(softmax_args a) {
  const query_keys own(a);
  if (own.head >= a.heads) return;
  const float* shares = own.at(a.scores);
  float* gradients = own.at(a.gradients);
  float total = 0;
  for (int key = own.from + own.lane; key < own.to; key += 32) total = fmaf(shares[key], gradients[key], total);
  const float mean = warp_sum(total);
  for (int key = own.lane; key < own.end; key += 32)
    gradients[key] = own.sees(key) ? (shares[key] * (gradients[key] - mean)) * slope_of(a, own, key) : 0.0f;
}

/// A warp writes a row of bf16 over the floats that it is made of, in order: value(key) reads floats of no earlier
/// keys.
template <class Value>
__device__ void put_rounded(const query_keys& own, float* row, Value value) {
  auto* rounded = reinterpret_cast<std::uint16_t*>(row);
  for (int first = 0; first < own.end; first += 32) {
    const int key = first + own.lane;
    const std::uint16_t bits = own.sees(key) ? bf16_bits(value(key)) : std::uint16_t{0};
    __syncwarp();  // what lies there has been read by all
    rounded[key] = bits;
  }
}

__global__ void softmax_rounded_rows(softmax_args a) {
  const query_keys own(a);
  if (own.head >= a.heads) return;
  float* scores = own.at(a.scores);
  const float largest = largest_score(own, scores, a.factor);
  float total = 0;
  const auto power = [&](int key) { return expf(scores[key] * a.factor - largest); };
  for (int key = own.from + own.lane; key < own.to; key += 32) total += power(key);
  const float share = 1.0f / warp_sum(total);
  put_rounded(own, scores, [&](int key) { return power(key) * share; });
}

__global__ void softmax_back_rounded_rows(softmax_args a) {
  const query_keys own(a);
  if (own.head >= a.heads) return;
  const auto* shares = reinterpret_cast<const std::uint16_t*>(own.at(a.scores));
  float* gradients = own.at(a.gradients);
  float total = 0;
  for (int key = own.from + own.lane; key < own.to; key += 32)
    total = fmaf(bf16_value(shares[key]), gradients[key], total);
  const float mean = warp_sum(total);
  put_rounded(own, gradients,
              [&](int key) { return (bf16_value(shares[key]) * (gradients[key] - mean)) * slope_of(a, own, key); });
}

}  // namespace

void turn_heads(const stream& on, const turn_args& args) {
  launch("turn_heads", turn_rows, dim3(args.rows, grid_for(args.heads, head_warps)), head_warps * 32, on, args);
}

void turn_heads_back(const stream& on, const turn_args& args) {
  launch("turn_heads_back", turn_rows_back, dim3(args.rows, grid_for(args.heads, head_warps)), head_warps * 32, on,
         args);
}

void cap_scores(const stream& on, const softmax_args& args, float cap) {
  launch("cap_scores", cap_score_rows, dim3(args.rows, grid_for(args.heads, softmax_warps)), softmax_threads, on, args,
         soft_cap{cap});
}

void softmax(const stream& on, const softmax_args& args) {
  launch("softmax", softmax_rows, dim3(args.rows, grid_for(args.heads, softmax_warps)), softmax_threads, on, args);
}

void softmax_back(const stream& on, const softmax_args& args) {
  launch("softmax_back", softmax_back_rows, dim3(args.rows, grid_for(args.heads, softmax_warps)), softmax_threads, on,
         args);
}

void softmax_rounded(const stream& on, const softmax_args& args) {
  launch("softmax_rounded", softmax_rounded_rows, dim3(args.rows, grid_for(args.heads, softmax_warps)), softmax_threads,
         on, args);
}

void softmax_back_rounded(const stream& on, const softmax_args& args) {
  launch("softmax_back_rounded", softmax_back_rounded_rows, dim3(args.rows, grid_for(args.heads, softmax_warps)),
         softmax_threads, on, args);
}

}  // namespace troupe::cuda
