// Norms, activations and what else makes one row out of one row: a block for a row, thread t for elements t, t + 256 …
#include "model/ops/cuda/codes.hpp"

namespace troupe::cuda {
namespace {

__global__ void encode_rows(float_rows x, std::int64_t n, row_codes codes) {
  make_codes(x.data + blockIdx.x * x.stride, n, blockIdx.x, codes);
}

__device__ const float* source_of(const norm_args& a) {
  return a.x.data + (a.gather ? a.gather[blockIdx.x] : blockIdx.x) * a.x.stride;
}

__global__ void rms_norm_rows(norm_args a) {
  const float* x = source_of(a);
  float* out = a.out.data + blockIdx.x * a.out.stride;
  float squares = 0;
  for (std::int64_t i = threadIdx.x; i < a.n; i += row_threads) squares = fmaf(x[i], x[i], squares);
  const float factor = 1.0f / sqrtf(row_sum(squares) / static_cast<float>(a.n) + a.eps);
  for (std::int64_t i = threadIdx.x; i < a.n; i += row_threads) out[i] = (x[i] * factor) * a.weight[i];
  make_codes(out, a.n, blockIdx.x, a.codes);
}

__global__ void layer_norm_rows(norm_args a) {
  const float* x = source_of(a);
  float* out = a.out.data + blockIdx.x * a.out.stride;
  float total = 0, squares = 0;
  for (std::int64_t i = threadIdx.x; i < a.n; i += row_threads) total += x[i];
  const float mean = row_sum(total) / static_cast<float>(a.n);
  for (std::int64_t i = threadIdx.x; i < a.n; i += row_threads) squares = fmaf(x[i] - mean, x[i] - mean, squares);
  const float factor = 1.0f / sqrtf(row_sum(squares) / static_cast<float>(a.n) + a.eps);
  for (std::int64_t i = threadIdx.x; i < a.n; i += row_threads)
    out[i] = fmaf((x[i] - mean) * factor, a.weight[i], a.bias[i]);
  make_codes(out, a.n, blockIdx.x, a.codes);
}

__global__ void swiglu_rows(activation_args a) {
  const float *gate = a.gate.data + blockIdx.x * a.gate.stride, *x = a.x.data + blockIdx.x * a.x.stride;
  float* out = a.out.data + blockIdx.x * a.out.stride;
  for (std::int64_t i = threadIdx.x; i < a.n; i += row_threads) out[i] = (gate[i] * sigmoid(gate[i])) * x[i];
  make_codes(out, a.n, blockIdx.x, a.codes);
}

__global__ void gelu_rows(activation_args a) {
  const float* x = a.x.data + blockIdx.x * a.x.stride;
  float* out = a.out.data + blockIdx.x * a.out.stride;
  for (std::int64_t i = threadIdx.x; i < a.n; i += row_threads) {
    // 0.5 x (1 + tanh(u)) is x sigmoid(2u)
    const float v = x[i], inner = fmaf((v * v) * v, 0.044715f, v);
    out[i] = v * sigmoid(inner * 1.5957691216057308f);
  }
  make_codes(out, a.n, blockIdx.x, a.codes);
}

}  // namespace

coded_rows::coded_rows(std::int64_t most_rows, std::int64_t most_ins) {
  const auto rows = static_cast<std::size_t>(most_rows),
             elements = rows * static_cast<std::size_t>(padded_row(most_ins));
  q_ = device_buffer<std::int8_t>(elements);
  scales_ = device_buffer<float>(rows);
  sums_ = device_buffer<std::int32_t>(rows);
  group_sums_ = device_buffer<std::int32_t>(elements / 32);
  bf16_ = device_buffer<std::uint16_t>(elements);
}

row_codes coded_rows::view(bool integers, bool bf16) const {
  row_codes codes;
  if (integers) codes = {q_.data(), scales_.data(), sums_.data(), group_sums_.data(), nullptr};
  if (bf16) codes.bf16 = bf16_.data();
  return codes;
}

void encode(const stream& on, float_rows x, int rows, std::int64_t n, const row_codes& codes) {
  launch("encode", encode_rows, rows, row_threads, on, x, n, codes);
}

void rms_norm(const stream& on, const norm_args& args) {
  launch("rms_norm", rms_norm_rows, args.rows, row_threads, on, args);
}

void layer_norm(const stream& on, const norm_args& args) {
  launch("layer_norm", layer_norm_rows, args.rows, row_threads, on, args);
}

void swiglu(const stream& on, const activation_args& args) {
  launch("swiglu", swiglu_rows, args.rows, row_threads, on, args);
}

void gelu_tanh(const stream& on, const activation_args& args) {
  launch("gelu_tanh", gelu_rows, args.rows, row_threads, on, args);
}

}  // namespace troupe::cuda
