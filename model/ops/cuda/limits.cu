#include "model/ops/cuda/limits.hpp"

#include <algorithm>

#include "model/ops/cuda/wgmma.hpp"

namespace troupe::cuda {
namespace {

constexpr int spin_warps = 8;
constexpr int chains = 8;  // sums that do not wait for each other
constexpr int spin_rounds = 512;
constexpr int spin_blocks = 4096;

__device__ void multiply(int (&sum)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2]) {
  mma_s8(sum, a, b);
}
__device__ void multiply(float (&sum)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2]) {
  mma_bf16(sum, a, b);
}

template <class Sum>
__global__ void spin(Sum* out, std::uint32_t seed) {
  const std::uint32_t a[4] = {seed, seed, seed, seed}, b[2] = {seed, seed};
  Sum sums[chains][4] = {};
  for (int round = 0; round < spin_rounds; ++round)
    for (auto& sum : sums) multiply(sum, a, b);
  Sum total = 0;
  for (const auto& sum : sums) total += sum[0];
  if (threadIdx.x == 0) out[blockIdx.x] = total;
}

// ---- the same with Hopper's instructions ----

constexpr int wide_spin_threads = 256, wide_spin_rows = 128, wide_spin_steps = swizzled_row_bytes / 32;
constexpr std::size_t wide_spin_bytes = wide_spin_rows * swizzled_row_bytes;

/// As 16-bit floats: numbers of about one, of either sign.
__device__ std::uint32_t spin_word(std::uint32_t seed) {
  return (seed * 2654435761u & 0x807f807fu) | 0x3f003f00u;
}

template <class Sum>
__global__ void __launch_bounds__(wide_spin_threads) spin_wide(Sum* out) {
  auto* rows = reinterpret_cast<std::uint32_t*>(dynamic_shared());
  for (unsigned i = threadIdx.x; i < wide_spin_bytes / 4; i += wide_spin_threads) rows[i] = spin_word(i);
  show_to_tensor_cores();
  __syncthreads();
  std::uint32_t weights[4];
  for (unsigned i = 0; i < 4; ++i) weights[i] = spin_word(threadIdx.x * 4 + i);
  Sum sums[wide_spin_rows / 8][4] = {};
  for (int round = 0; round < spin_rounds; ++round) {
    open_products();
#pragma unroll
    for (int step = 0; step < wide_spin_steps; ++step) multiply_step(sums, weights, rows, step, true);
    close_products();
    wait_for_products<0>();
  }
  Sum total = 0;
  for (const auto& sum : sums) total += sum[0];
  out[blockIdx.x * wide_spin_threads + threadIdx.x] = total;
}

constexpr int trials = 50;  // some tens of milliseconds: an idle device takes a while to reach its clock

template <class Work>
double best_rate(const stream& on, double amount, Work work) {
  double best = 0;
  for (int trial = 0; trial < trials; ++trial) {
    const event begin, end;
    begin.record(on);
    work();
    end.record(on);
    end.wait();
    best = std::max(best, amount / (static_cast<double>(end.milliseconds_since(begin)) / 1e3));
  }
  return best;
}

template <class Sum>
double wide_product_rate(const stream& on, double inputs) {
  constexpr int waves = 16;
  const int blocks = multiprocessors() * waves;
  const device_buffer<Sum> out(static_cast<std::size_t>(blocks) * wide_spin_threads);
  const double outs = wide_spin_threads / 128 * 64;
  return best_rate(on, 2 * outs * wide_spin_rows * inputs * wide_spin_steps * spin_rounds * blocks, [&] {
    launch("spinning", spin_wide<Sum>,
           launch_shape{dim3(static_cast<unsigned>(blocks)), wide_spin_threads, wide_spin_bytes}, on, out.data());
  });
}

template <class Sum>
double product_rate(const stream& on, double inputs) {
  if (is_hopper()) return wide_product_rate<Sum>(on, inputs);
  const device_buffer<Sum> out(spin_blocks);
  const double products = 16.0 * 8.0 * inputs * chains * spin_rounds * spin_warps * spin_blocks;
  return best_rate(on, 2 * products, [&] {
    launch("spinning", spin<Sum>, spin_blocks, spin_warps * 32, on, out.data(), std::uint32_t{0x01010101});
  });
}

/// That no kernel was compiled for the device, nor is compiled for it now.
bool is_lack_of_code(cudaError_t error) {
  switch (error) {
    case cudaErrorInvalidDeviceFunction:
    case cudaErrorNoKernelImageForDevice:
    case cudaErrorJitCompilerNotFound:
    case cudaErrorUnsupportedPtxVersion:
    case cudaErrorJitCompilationDisabled:
      return true;
    default:
      return false;
  }
}

}  // namespace

bool has_code() {
  cudaFuncAttributes unused{};
  const cudaError_t error = cudaFuncGetAttributes(&unused, spin<int>);
  if (!is_lack_of_code(error)) check(error, "looking for the device's code");
  return error == cudaSuccess;
}

double copy_rate(const stream& on) {
  constexpr std::size_t bytes = std::size_t{512} << 20;
  const device_buffer<std::byte> from(bytes), to(bytes);
  clear(from.data(), bytes, on);
  return best_rate(on, 2.0 * static_cast<double>(bytes), [&] { copy(to.data(), from.data(), bytes, on); });
}

double int8_rate(const stream& on) {
  return product_rate<int>(on, 32);
}

double bf16_rate(const stream& on) {
  return product_rate<float>(on, 16);
}

}  // namespace troupe::cuda
