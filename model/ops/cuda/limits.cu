#include "model/ops/cuda/limits.hpp"

#include <algorithm>

#include "model/ops/cuda/kernel.hpp"

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
double product_rate(const stream& on, double inputs) {
  const device_buffer<Sum> out(spin_blocks);
  const double products = 16.0 * 8.0 * inputs * chains * spin_rounds * spin_warps * spin_blocks;
  return best_rate(on, 2 * products, [&] {
    launch("spinning", spin<Sum>, spin_blocks, spin_warps * 32, on, out.data(), std::uint32_t{0x01010101});
  });
}

}  // namespace

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
