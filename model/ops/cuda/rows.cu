// Norms, activations and what else makes one row out of one row: a block for a row, which is held in its registers.
#include "model/ops/cuda/activations.hpp"
#include "model/ops/cuda/codes.hpp"

namespace troupe::cuda {
namespace {

/// The block's row is done.
template <class Share>
__device__ void finish(const held_row<Share>& x, int n, const float_rows& out, const row_codes& codes) {
  if (out.data) x.store(out.row(blockIdx.x), n);
  make_codes(x, n, blockIdx.x, codes);
}

template <class Share>
__global__ void __launch_bounds__(Share::threads, Share::least_blocks)
    encode_rows(float_rows x, int n, row_codes codes) {
  await_last_kernel();
  held_row<Share> row;
  row.load(x.row(blockIdx.x), n);
  make_codes(row, n, blockIdx.x, codes);
}

__device__ const float* source_of(const norm_args& a) {
  return a.x.row(a.gather ? a.gather[blockIdx.x] : blockIdx.x);
}

/// 1 / the root of what squares sum up to.
template <class Share>
__device__ float norm_factor(const held_row<Share>& x, const norm_args& a) {
  const float squares = x.thread_total([](float sum, float v) { return fmaf(v, v, sum); });
  return 1.0f / sqrtf(block_sum<row_value::squares, Share>(squares) / static_cast<float>(a.n) + a.eps);
}

template <class Share, bool Adds>
__device__ void finish_norm(const held_row<Share>& x, int n, const norm_args& a) {
  if constexpr (Adds) {
    held_row<Share> sum;
    sum.load(a.before.row(blockIdx.x), n);
    sum.each([&](int j, int) { sum.of[j] = change([](float v, float by) { return v + by; }, sum.of[j], x.of[j]); });
    sum.store(a.out.row(blockIdx.x), n);
  } else {
    finish(x, n, a.out, a.codes);
  }
}

template <class Share, bool Adds>
__global__ void __launch_bounds__(Share::threads, Share::least_blocks) rms_norm_rows(norm_args a) {
  const auto n = static_cast<int>(a.n);
  held_row<Share> x, weight;
  weight.load(a.weight, n);  // weights are there before the last kernel has ended
  await_last_kernel();
  x.load(source_of(a), n);
  const float factor = norm_factor(x, a);
  x.each(
      [&](int j, int) { x.of[j] = change([&](float v, float w) { return (v * factor) * w; }, x.of[j], weight.of[j]); });
  finish_norm<Share, Adds>(x, n, a);
}

template <class Share, bool Adds>
__global__ void __launch_bounds__(Share::threads, Share::least_blocks) layer_norm_rows(norm_args a) {
  const auto n = static_cast<int>(a.n);
  held_row<Share> x, weight, bias;
  weight.load(a.weight, n);
  bias.load(a.bias, n);
  await_last_kernel();
  x.load(source_of(a), n);
  const float total = x.thread_total([](float sum, float v) { return sum + v; });
  const float mean = block_sum<row_value::sum, Share>(total) / static_cast<float>(a.n);
  x.each([&](int j, int place) {
    if (place * 4 < n) x.of[j] = change([&](float v) { return v - mean; }, x.of[j]);
  });
  x.end(n);
  const float factor = norm_factor(x, a);
  x.each([&](int j, int) {
    x.of[j] =
        change([&](float v, float w, float b) { return fmaf(v * factor, w, b); }, x.of[j], weight.of[j], bias.of[j]);
  });
  finish_norm<Share, Adds>(x, n, a);
}

template <class Share, class Activation>
__global__ void __launch_bounds__(Share::threads, Share::least_blocks) gated_rows(activation_args a) {
  await_last_kernel();
  if (a.wanted && a.wanted[blockIdx.x] < 0) return;
  const auto n = static_cast<int>(a.n);
  const float *gate = a.gate.row(blockIdx.x), *up = a.x.row(blockIdx.x);
  held_row<Share> x;
  x.each([&](int j, int place) {
    x.of[j] = change([](float g, float v) { return Activation()(g) * v; }, x.load_four(gate, place, n),
                     x.load_four(up, place, n));
  });
  x.end(n);
  finish(x, n, a.out, a.codes);
}

template <class Share>
__global__ void __launch_bounds__(Share::threads, Share::least_blocks) gelu_rows(activation_args a) {
  await_last_kernel();
  const auto n = static_cast<int>(a.n);
  held_row<Share> x;
  x.load(a.x.row(blockIdx.x), n);
  x.each([&](int j, int) { x.of[j] = change(gelu(), x.of[j]); });
  finish(x, n, a.out, a.codes);
}

/// start(share, blocks of a row): one block where there is a largest element to be found.
template <class Start>
void for_codes(std::int64_t n, const row_codes& codes, Start start) {
  if (codes.q)
    for_width(n, [&](auto share) { start(share, 1u); });
  else
    for_parts(n, start);
}

template <class... P, class... A>
void start_rows(const char* operation, void (*kernel)(P...), int rows, unsigned blocks, int threads, const stream& on,
                const A&... arguments) {
  launch_early(operation, kernel, dim3(static_cast<unsigned>(rows), blocks), static_cast<unsigned>(threads), on,
               arguments...);
}

}  // namespace

row_codes row_codes::from(std::int64_t row, std::int64_t n) const {
  const std::int64_t elements = row * padded_row(n);
  row_codes codes;
  if (q) codes = {q + elements, scales + row, sums + row, group_sums + elements / 32, nullptr};
  if (bf16) codes.bf16 = bf16 + elements;
  return codes;
}

coded_rows::coded_rows(std::int64_t most_rows, std::int64_t most_ins, bool integers, bool bf16) {
  const auto rows = static_cast<std::size_t>(most_rows),
             elements = rows * static_cast<std::size_t>(padded_row(most_ins));
  if (bf16) bf16_ = device_buffer<std::uint16_t>(elements);
  if (!integers) return;
  q_ = device_buffer<std::int8_t>(elements);
  scales_ = device_buffer<float>(rows);
  sums_ = device_buffer<std::int32_t>(rows);
  group_sums_ = device_buffer<std::int32_t>(elements / 32);
}

row_codes coded_rows::view(bool integers, bool bf16) const {
  row_codes codes;
  if (integers) codes = {q_.data(), scales_.data(), sums_.data(), group_sums_.data(), nullptr};
  if (bf16) codes.bf16 = bf16_.data();
  return codes;
}

void encode(const stream& on, float_rows x, int rows, std::int64_t n, const row_codes& codes) {
  for_codes(n, codes, [&](auto share, unsigned blocks) {
    start_rows("encode", encode_rows<decltype(share)>, rows, blocks, share.threads, on, x, static_cast<int>(n), codes);
  });
}

void rms_norm(const stream& on, const norm_args& args) {
  for_width(args.n, [&](auto share) {
    using rows_share = decltype(share);
    const auto kernel = args.before.data ? rms_norm_rows<rows_share, true> : rms_norm_rows<rows_share, false>;
    start_rows("rms_norm", kernel, args.rows, 1, share.threads, on, args);
  });
}

void layer_norm(const stream& on, const norm_args& args) {
  for_width(args.n, [&](auto share) {
    using rows_share = decltype(share);
    const auto kernel = args.before.data ? layer_norm_rows<rows_share, true> : layer_norm_rows<rows_share, false>;
    start_rows("layer_norm", kernel, args.rows, 1, share.threads, on, args);
  });
}

void swiglu(const stream& on, const activation_args& args) {
  for_codes(args.n, args.codes, [&](auto share, unsigned blocks) {
    start_rows("swiglu", gated_rows<decltype(share), silu>, args.rows, blocks, share.threads, on, args);
  });
}

void geglu(const stream& on, const activation_args& args) {
  for_codes(args.n, args.codes, [&](auto share, unsigned blocks) {
    start_rows("geglu", gated_rows<decltype(share), gelu>, args.rows, blocks, share.threads, on, args);
  });
}

void gelu_tanh(const stream& on, const activation_args& args) {
  for_codes(args.n, args.codes, [&](auto share, unsigned blocks) {
    start_rows("gelu_tanh", gelu_rows<decltype(share)>, args.rows, blocks, share.threads, on, args);
  });
}

}  // namespace troupe::cuda
