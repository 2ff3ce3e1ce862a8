#include <algorithm>
#include <vector>

#include "model/ops/cuda/kernel.hpp"
#include "model/ops/cuda/limits.hpp"
#include "model/ops/cuda/ops.hpp"

namespace troupe::cuda {
namespace {

constexpr int noise_threads = 256;
constexpr int product_trials = 4, turns = 8;
constexpr std::size_t most_cached = std::size_t{128} << 20;  // no L2 cache is as large

/// Numbers of about one and of either sign, as bf16; as bytes they are anything.
__global__ void __launch_bounds__(noise_threads) make_noise(std::uint32_t* words, std::int64_t count) {
  const std::int64_t i = std::int64_t{blockIdx.x} * noise_threads + threadIdx.x;
  if (i < count) words[i] = (static_cast<std::uint32_t>(i) * 2654435761u & 0x807f807fu) | 0x3f003f00u;
}
template <class T>
void fill(T* to, std::size_t count, const stream& on) {
  const auto words = static_cast<std::int64_t>(count * sizeof(T) / 4);
  launch("filling", make_noise, grid_for(words, noise_threads), noise_threads, on, reinterpret_cast<std::uint32_t*>(to),
         words);
}

/// Matrices that share inputs, several times over, so that none is still in a cache when its turn comes again.
class matrices {
 public:
  matrices(scheme kind, std::span<const std::int64_t> outs, std::int64_t ins, float* y, int rows, const stream& on) {
    constexpr std::size_t alignment = 256;
    std::size_t bytes = 0;
    for (const std::int64_t n : outs) bytes += packed_bytes(kind, n, ins).total() + alignment;
    const auto copies = std::clamp<std::size_t>(most_cached / bytes, 2, turns);
    memory_ = device_buffer<std::byte>(copies * bytes);
    fill(memory_.data(), memory_.size(), on);
    std::byte* at = memory_.data();
    for (std::size_t copy = 0; copy < copies; ++copy) {
      std::vector<product>& all = sets_.emplace_back();
      float* to = y;
      for (const std::int64_t n : outs) {
        const std::int64_t stride = padded_row(n);
        all.push_back({view_of(kind, n, ins, at), {to, stride}});
        to += stride * rows;
        at += rounded_up(static_cast<std::int64_t>(packed_bytes(kind, n, ins).total()), alignment);
      }
    }
  }
  std::span<const product> of_turn(int turn) const { return sets_[static_cast<std::size_t>(turn) % sets_.size()]; }

 private:
  device_buffer<std::byte> memory_;
  std::vector<std::vector<product>> sets_;
};

}  // namespace

double product_seconds(const stream& on, scheme kind, std::span<const std::int64_t> outs, std::int64_t ins, int rows) {
  std::int64_t columns = 0;
  for (const std::int64_t n : outs) columns += padded_row(n);
  const device_buffer<float> y(static_cast<std::size_t>(columns * rows)),
      x(static_cast<std::size_t>(padded_row(ins) * rows)), scratch(static_cast<std::size_t>(matmul_scratch_floats()));
  fill(x.data(), x.size(), on);
  const coded_rows codes(rows, ins);
  const product_inputs inputs{rows, {x.data(), padded_row(ins)}, codes.view(kind), scratch.data()};
  encode(on, inputs.x, rows, ins, inputs.codes);
  const matrices weights(kind, outs, ins, y.data(), rows, on);
  on.wait();  // products read weights before the kernel that has just written them need have ended
  matmul(on, weights.of_turn(0), inputs);  // loads the kernels
  const graph all = graph::capture(on, [&] {
    for (int turn = 0; turn < turns; ++turn) matmul(on, weights.of_turn(turn), inputs);
  });
  float best = 0;
  for (int trial = 0; trial < product_trials; ++trial) {
    const event begin, end;
    begin.record(on);
    all.launch(on);
    end.record(on);
    end.wait();
    const float milliseconds = end.milliseconds_since(begin);
    best = trial == 0 ? milliseconds : std::min(best, milliseconds);
  }
  return static_cast<double>(best) / 1e3 / turns;
}

}  // namespace troupe::cuda
