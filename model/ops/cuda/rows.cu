// Norms, activations and what else makes one row out of one row: a block for a row, its threads in turn for elements.
#include "model/ops/cuda/codes.hpp"

namespace troupe::cuda {
namespace {

__global__ void __launch_bounds__(row_threads) encode_rows(float_rows x, std::int64_t n, row_codes codes) {
  make_codes(x.row(blockIdx.x), n, blockIdx.x, codes);
}

__device__ const float* source_of(const norm_args& a) {
  return a.x.row(a.gather ? a.gather[blockIdx.x] : blockIdx.x);
}

__global__ void __launch_bounds__(row_threads) rms_norm_rows(norm_args a) {
  const float* x = source_of(a);
  float* out = a.out.row(blockIdx.x);
  float squares = 0;
  for_elements(
      a.n, [&](std::int64_t i) { return x[i]; }, [&](std::int64_t, float v) { squares = fmaf(v, v, squares); });
  const float factor = 1.0f / sqrtf(row_sum(squares) / static_cast<float>(a.n) + a.eps);
  for_elements(
      a.n, [&](std::int64_t i) { return make_float2(x[i], a.weight[i]); },
      [&](std::int64_t i, float2 v) { out[i] = (v.x * factor) * v.y; });
  make_codes(out, a.n, blockIdx.x, a.codes);
}

__global__ void __launch_bounds__(row_threads) layer_norm_rows(norm_args a) {
  struct element {
    float x, weight, bias;
  };
  const float* x = source_of(a);
  float* out = a.out.row(blockIdx.x);
  const auto read = [&](std::int64_t i) { return x[i]; };
  float total = 0, squares = 0;
  for_elements(a.n, read, [&](std::int64_t, float v) { total += v; });
  const float mean = row_sum(total) / static_cast<float>(a.n);
  for_elements(a.n, read, [&](std::int64_t, float v) { squares = fmaf(v - mean, v - mean, squares); });
  const float factor = 1.0f / sqrtf(row_sum(squares) / static_cast<float>(a.n) + a.eps);
  for_elements(
      a.n,
      [&](std::int64_t i) {
        return element{x[i], a.weight[i], a.bias[i]};
      },
      [&](std::int64_t i, element v) { out[i] = fmaf((v.x - mean) * factor, v.weight, v.bias); });
  make_codes(out, a.n, blockIdx.x, a.codes);
}

__global__ void __launch_bounds__(row_threads) swiglu_rows(activation_args a) {
  const float *gate = a.gate.row(blockIdx.x), *x = a.x.row(blockIdx.x);
  float* out = a.out.row(blockIdx.x);
  for_elements(
      a.n, [&](std::int64_t i) { return make_float2(gate[i], x[i]); },
      [&](std::int64_t i, float2 v) { out[i] = (v.x * sigmoid(v.x)) * v.y; });
  make_codes(out, a.n, blockIdx.x, a.codes);
}

__global__ void __launch_bounds__(row_threads) gelu_rows(activation_args a) {
  const float* x = a.x.row(blockIdx.x);
  float* out = a.out.row(blockIdx.x);
  for_elements(
      a.n, [&](std::int64_t i) { return x[i]; },
      [&](std::int64_t i, float v) {
        // 0.5 x (1 + tanh(u)) is x sigmoid(2u)
        const float inner = fmaf((v * v) * v, 0.044715f, v);
        out[i] = v * sigmoid(inner * 1.5957691216057308f);
      });
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
  launch("encode", encode_rows, rows, row_threads_for(n), on, x, n, codes);
}

void rms_norm(const stream& on, const norm_args& args) {
  launch("rms_norm", rms_norm_rows, args.rows, row_threads_for(args.n), on, args);
}

void layer_norm(const stream& on, const norm_args& args) {
  launch("layer_norm", layer_norm_rows, args.rows, row_threads_for(args.n), on, args);
}

void swiglu(const stream& on, const activation_args& args) {
  launch("swiglu", swiglu_rows, args.rows, row_threads_for(args.n), on, args);
}

void gelu_tanh(const stream& on, const activation_args& args) {
  launch("gelu_tanh", gelu_rows, args.rows, row_threads_for(args.n), on, args);
}

}  // namespace troupe::cuda
