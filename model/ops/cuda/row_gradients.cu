// What comes back through norms and activations, and the loss that it begins with: a block for a row.
#include "model/ops/cuda/kernel.hpp"
#include "model/ops/cuda/train_ops.hpp"

namespace troupe::cuda {
namespace {

struct norm_row {
  const float *x, *dy;
  float* dx;

  __device__ explicit norm_row(const norm_back_args& a) : dy(a.dy.row(blockIdx.x)) {
    const std::int64_t row = a.gather ? a.gather[blockIdx.x] : blockIdx.x;
    x = a.x.row(row);
    dx = a.dx.row(row);
  }
};

__global__ void __launch_bounds__(row_threads) rms_norm_back_rows(norm_back_args a) {
  const norm_row row(a);
  float squares = 0, products = 0;
  for (std::int64_t i = threadIdx.x; i < a.n; i += blockDim.x) {
    squares = fmaf(row.x[i], row.x[i], squares);
    products = fmaf(row.dy[i] * a.weight[i], row.x[i], products);
  }
  const auto n = static_cast<float>(a.n);
  const float factor = 1.0f / sqrtf(row_sum(squares) / n + a.eps);
  const float share = (factor * factor) * (row_sum(products) / n);
  for (std::int64_t i = threadIdx.x; i < a.n; i += blockDim.x)
    row.dx[i] += (row.dy[i] * a.weight[i] - row.x[i] * share) * factor;
}

__global__ void __launch_bounds__(row_threads) layer_norm_back_rows(norm_back_args a) {
  const norm_row row(a);
  const auto n = static_cast<float>(a.n);
  float total = 0, squares = 0, sums = 0, products = 0;
  for (std::int64_t i = threadIdx.x; i < a.n; i += blockDim.x) total += row.x[i];
  const float mean = row_sum(total) / n;
  for (std::int64_t i = threadIdx.x; i < a.n; i += blockDim.x) {
    const float d = row.x[i] - mean, g = row.dy[i] * a.weight[i];
    squares = fmaf(d, d, squares);
    products = fmaf(g, d, products);
    sums += g;
  }
  const float factor = 1.0f / sqrtf(row_sum(squares) / n + a.eps), middle = row_sum(sums) / n;
  const float share = (factor * factor) * (row_sum(products) / n);
  for (std::int64_t i = threadIdx.x; i < a.n; i += blockDim.x)
    row.dx[i] += (row.dy[i] * a.weight[i] - middle - (row.x[i] - mean) * share) * factor;
}

__global__ void __launch_bounds__(row_threads) swiglu_back_rows(activation_back_args a) {
  const float* dy = a.dy.row(blockIdx.x);
  float *gate = a.gate.row(blockIdx.x), *up = a.x.row(blockIdx.x);
  for (std::int64_t i = threadIdx.x; i < a.n; i += blockDim.x) {
    const float s = sigmoid(gate[i]), silu = gate[i] * s, u = up[i];
    up[i] = dy[i] * silu;
    gate[i] = (dy[i] * u) * fmaf(silu, 1.0f - s, s);
  }
}

/// y = x s(u) with u = a (x + b x^3): y' = s + x s (1 - s) a (1 + 3 b x^2)
struct gelu_at {
  static constexpr float slope_of_sigmoid = 1.5957691216057308f, cubic = 0.044715f;
  float value, slope;

  __device__ explicit gelu_at(float x) {
    const float square = x * x, s = sigmoid(fmaf(square * x, cubic, x) * slope_of_sigmoid);
    value = x * s;
    slope = fmaf(value * (1.0f - s), fmaf(square, 3 * cubic, 1.0f) * slope_of_sigmoid, s);
  }
};

__global__ void __launch_bounds__(row_threads) geglu_back_rows(activation_back_args a) {
  const float* dy = a.dy.row(blockIdx.x);
  float *gate = a.gate.row(blockIdx.x), *up = a.x.row(blockIdx.x);
  for (std::int64_t i = threadIdx.x; i < a.n; i += blockDim.x) {
    const gelu_at gelu(gate[i]);
    const float u = up[i];
    up[i] = dy[i] * gelu.value;
    gate[i] = (dy[i] * u) * gelu.slope;
  }
}

__global__ void __launch_bounds__(row_threads) gelu_back_rows(activation_back_args a) {
  const float* dy = a.dy.row(blockIdx.x);
  float* x = a.x.row(blockIdx.x);
  for (std::int64_t i = threadIdx.x; i < a.n; i += blockDim.x) x[i] = dy[i] * gelu_at(x[i]).slope;
}

__global__ void __launch_bounds__(row_threads) cross_entropy_rows(cross_entropy_args a) {
  float* x = a.logits.row(blockIdx.x);
  const std::int32_t target = a.targets[blockIdx.x];
  cross_entropy_result result;
  result.target = x[target];
  float largest = minus_infinity;
  for (std::int64_t i = threadIdx.x; i < a.n; i += blockDim.x) largest = fmaxf(largest, x[i]);
  result.most = row_max(largest);
  float before = minus_infinity;
  for (std::int64_t i = threadIdx.x; i < target; i += blockDim.x) before = fmaxf(before, x[i]);
  result.leads = result.target > row_max(before) && result.target >= result.most;  // of equals the first
  float total = 0;
  for (std::int64_t i = threadIdx.x; i < a.n; i += blockDim.x) {
    x[i] = expf(x[i] - result.most);
    total += x[i];
  }
  result.sum = row_sum(total);
  const float share = a.factor / result.sum;
  const float* slopes = a.slopes.data ? a.slopes.row(blockIdx.x) : nullptr;
  for (std::int64_t i = threadIdx.x; i < a.n; i += blockDim.x) {
    x[i] = x[i] * share - (i == target ? a.factor : 0.0f);
    if (slopes) x[i] *= slopes[i];
  }
  if (threadIdx.x == 0) a.results[blockIdx.x] = result;
}

}  // namespace

void rms_norm_back(const stream& on, const norm_back_args& args) {
  launch("rms_norm_back", rms_norm_back_rows, args.rows, row_threads_for(args.n), on, args);
}

void layer_norm_back(const stream& on, const norm_back_args& args) {
  launch("layer_norm_back", layer_norm_back_rows, args.rows, row_threads_for(args.n), on, args);
}

void swiglu_back(const stream& on, const activation_back_args& args) {
  launch("swiglu_back", swiglu_back_rows, args.rows, row_threads_for(args.n), on, args);
}

void geglu_back(const stream& on, const activation_back_args& args) {
  launch("geglu_back", geglu_back_rows, args.rows, row_threads_for(args.n), on, args);
}

void gelu_back(const stream& on, const activation_back_args& args) {
  launch("gelu_back", gelu_back_rows, args.rows, row_threads_for(args.n), on, args);
}

void cross_entropy(const stream& on, const cross_entropy_args& args) {
  launch("cross_entropy", cross_entropy_rows, args.rows, row_threads_for(args.n), on, args);
}

}  // namespace troupe::cuda
