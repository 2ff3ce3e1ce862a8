#include "model/ops/matmul.hpp"

#include <algorithm>

namespace troupe {
namespace {

constexpr int most_tile_rows = 12;

/// Tiles of nearly equal height: 16 rows are two of 8, not one of 12 and one of 4.
int tile_for(int rows) {
  const int tiles = (rows + most_tile_rows - 1) / most_tile_rows;
  return tiles == 0 ? 1 : (rows + tiles - 1) / tiles;
}

/// Blocks that one task takes: enough tasks that threads end together, each large enough to be worth handing over, and
/// a multiple of what a kernel does at once. Of many rows each task reads all, so it should not be small.
std::int64_t blocks_per_task(std::span<const matmul_args> jobs, int threads) {
  constexpr std::int64_t least_products = 1 << 15;
  const std::int64_t unit = jobs.front().rows <= 6 ? 4 : 12;
  std::int64_t blocks = 0, products = 0;
  for (const auto& job : jobs) {
    blocks += job.w.blocks();
    products += job.w.blocks() * outs_per_block * job.w.ins * job.rows;
  }
  if (threads == 1 || products < 2 * least_products) return std::max<std::int64_t>(blocks, 1);
  const std::int64_t balanced = blocks / (threads * 4);
  const std::int64_t worthwhile = least_products * blocks / products;
  return rounded_up(std::max({balanced, worthwhile, std::int64_t{1}}), unit);
}

}  // namespace

quantized_rows::quantized_rows(std::int64_t most_rows, std::int64_t most_ins) {
  // a last tile that is not full is padded, by less than a tile
  const auto rows = static_cast<std::size_t>(most_rows + most_tile_rows),
             ins = static_cast<std::size_t>(padded_row(most_ins));
  q_ = aligned_buffer<std::int8_t>(rows * ins + 64);
  scales_ = aligned_buffer<float>(rows);
  sums_ = aligned_buffer<std::int32_t>(rows);
  group_sums_ = aligned_buffer<std::int32_t>(rows * ins / 32);
}

// Rows that only fill the last tile keep what an earlier pass left: harmless, their outputs are never written.
void quantized_rows::begin(int rows, std::int64_t ins) {
  view_ = {rows, tile_for(rows), padded_row(ins), q_.data(), scales_.data(), sums_.data(), group_sums_.data()};
}

void quantized_rows::put(const kernel_table& kernels, int row, const float* x) {
  const std::int64_t first = row / view_.tile * view_.tile;
  const auto at = static_cast<std::size_t>(row);
  kernels.quantize(x, view_.ins, view_.tile, row % view_.tile, q_.data() + first * view_.ins, &scales_[at], &sums_[at],
                   group_sums_.data() + first * (view_.ins / 32));
}

void quantized_rows::assign(const compute& with, const float* x, std::int64_t stride, int rows, std::int64_t ins) {
  begin(rows, ins);
  constexpr int at_once = 16;
  with.pool.run((rows + at_once - 1) / at_once, [&](int task, int) {
    for (int row = task * at_once; row < std::min(rows, (task + 1) * at_once); ++row)
      put(with.kernels, row, x + row * stride);
  });
}

void matmul(const compute& with, std::span<const matmul_args> jobs) {
  const std::int64_t step = blocks_per_task(jobs, with.pool.threads());
  int tasks = 0;
  for (const auto& job : jobs) tasks += static_cast<int>((job.w.blocks() + step - 1) / step);
  with.pool.run(tasks, [&](int task, int) {
    std::int64_t first = task * step;
    for (const auto& job : jobs) {
      const std::int64_t span = rounded_up(job.w.blocks(), step);
      if (first < span) return with.kernels.matmul(job, first, std::min(first + step, job.w.blocks()));
      first -= span;
    }
  });
}

}  // namespace troupe
