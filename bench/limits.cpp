#include "bench/limits.hpp"

#include <cstring>
#include <vector>

#include <fmt/format.h>

#include "base/aligned_buffer.hpp"
#include "base/to_size.hpp"
#include "bench/timing.hpp"
#include "model/arch/gpu.hpp"

namespace troupe::bench {
namespace {

/// Operations a second of a loop that every thread runs at once: the best of several, since a limit is not an average.
template <class Spin>
double rate_of(const compute& with, Spin spin) {
  constexpr std::int64_t rounds = 2'000'000;
  std::vector<std::int64_t> done(to_size(with.pool.threads()));
  double best = 0;
  for (int trial = 0; trial < 5; ++trial) {
    const double start = now();
    with.pool.run(with.pool.threads(), [&](int part, int) { done[to_size(part)] = spin(rounds); });
    double total = 0;
    for (const std::int64_t operations : done) total += static_cast<double>(operations);
    best = std::max(best, total / (now() - start));
  }
  return best;
}

}  // namespace

double product_limit(const compute& with, scheme kind) {
  const kernel_table& k = with.kernels;
  return rate_of(with, has_nibbles(kind) ? k.spin_int4 : is_integer(kind) ? k.spin_int8 : k.spin_fma);
}

std::string_view factors_of(scheme kind) {
  return has_nibbles(kind) ? "int4" : is_integer(kind) ? "int8" : "f32";
}

double read_limit(const compute& with, std::span<const std::byte> data) {
  const int threads = with.pool.threads();
  const std::size_t part = data.size() / to_size(threads) / 256 * 256;
  const int passes = static_cast<int>(std::max<std::size_t>(1, (64u << 20) / std::max<std::size_t>(data.size(), 1)));
  const auto read_all = [&] {
    with.pool.run(threads, [&](int i, int) {
      for (int pass = 0; pass < passes; ++pass)
        with.kernels.read(data.data() + to_size(i) * part, static_cast<std::int64_t>(part));
    });
  };
  double best = 0;
  for (int trial = 0; trial < 5; ++trial) {
    const double start = now();
    read_all();
    best = std::max(best, static_cast<double>(part) * threads * passes / (now() - start));
  }
  return best;
}

void add_product_limits(const compute& with, const report& out) {
  for (const scheme kind : {scheme::u8, scheme::q4, scheme::f32})
    out.add({fmt::format("{} products", factors_of(kind)), {{"GOP/s", product_limit(with, kind) / 1e9}}});
}

void run_limits(const compute& with, const report& out) {
  out.title(fmt::format("limits of this machine: {} threads, {}", with.pool.threads(), with.kernels.isa));
  add_product_limits(with, out);
  constexpr std::size_t mebi = 1 << 20;
  const aligned_buffer<std::byte> memory(1024 * mebi);
  std::memset(memory.data(), 1, memory.size());
  for (const std::size_t size : {2 * mebi, 64 * mebi, 116 * mebi, 600 * mebi, 1024 * mebi})
    out.add({fmt::format("read {} MiB", size / mebi), {{"GB/s", read_limit(with, {memory.data(), size}) / 1e9}}});
}

gpu_limits run_gpu_limits(int gpu, const report& out) {
  const gpu_limits limits = measure_gpu(gpu);
  out.title(fmt::format("limits of {}", name_of(device_id{gpu})));
  out.add({"copying memory, bytes read and written", {{"GB/s", limits.bytes / 1e9}}});
  out.add({"int8 products", {{"GOP/s", limits.int8 / 1e9}}});
  out.add({"bf16 products", {{"GFLOP/s", limits.bf16 / 1e9}}});
  return limits;
}

}  // namespace troupe::bench
