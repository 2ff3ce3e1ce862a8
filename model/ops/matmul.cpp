#include "model/ops/matmul.hpp"

#include <algorithm>
#include <atomic>

#include "base/rounding.hpp"
#include "base/to_size.hpp"

namespace troupe {
namespace {

std::int64_t end_of(const matmul_args& job) {
  return job.last_block < 0 ? job.w.blocks() : job.last_block;
}
std::int64_t blocks_of(const matmul_args& job) {
  return end_of(job) - job.first_block;
}

/// Blocks for one task: so few that there are enough tasks for threads to end together, so many that a task is worth
/// handing over. Each task reads all rows, so with many rows it should not be small.
std::int64_t blocks_per_task(std::span<const matmul_args> jobs, int threads) {
  constexpr std::int64_t least_products = 1 << 15;
  std::int64_t blocks = 0, products = 0;
  for (const auto& job : jobs) {
    blocks += blocks_of(job);
    products += blocks_of(job) * outs_per_block * job.w.ins * job.rows;
  }
  if (threads == 1 || products < 2 * least_products) return std::max<std::int64_t>(blocks, 1);
  const std::int64_t balanced = blocks / (threads * 4);
  const std::int64_t worthwhile = least_products * blocks / products;
  const std::int64_t least = std::max({balanced, worthwhile, std::int64_t{1}});
  // Kernels do two, three or four blocks at once with more than six rows: twelve suit them all, if threads get as many.
  const std::int64_t twelves = rounded_up(least, 12);
  return jobs.front().rows > 6 && blocks % (twelves * threads) == 0 ? twelves : rounded_up(least, 4);
}

/// An adapter's rows come in tasks of a tile each.
low_rank_args rows_from(low_rank_args all, int first) {
  all.rows = std::min(all.rows - first, low_rank_rows);
  all.x += first * all.x_stride;
  all.between += first * all.between_stride;
  return all;
}
int row_tiles(const adapted_job& adapted) {
  return ceil_div(adapted.adapter.rows, low_rank_rows);
}

/// What adapters add to some blocks of outputs is read when their product is done.
fetch_list factors_for(std::span<const adapted_job> adapters, std::size_t job, std::int64_t first, std::int64_t last) {
  fetch_list list;
  for (const auto& [of, adapter] : adapters) {
    if (of != job || list.count == fetch_list::most) continue;
    const std::int64_t bytes = adapter.b.block_bytes();
    list.pieces[list.count++] = {adapter.b.weights + first * bytes, (last - first) * bytes};
  }
  return list;
}

}  // namespace

/// Of nearly equal height: 16 rows are two of 8, not one of 12 and one of 4. So many are done faster in tall ones.
tile_shape tile_for(const kernel_table& kernels, int rows) {
  if (kernels.tiled_matmul && rows > most_tile_rows) return tall_tile;
  const int tiles = ceil_div(rows, most_tile_rows);
  return {.rows = tiles == 0 ? 1 : ceil_div(rows, tiles)};
}

quantized_rows::quantized_rows(const kernel_table& kernels, std::span<const input_room> rooms, input_bits finest)
    : kernels_(kernels) {
  std::size_t rows = 0, inputs = 0;
  for (const input_room& room : rooms) {
    // a last tile that is not full is padded, by less than a tile
    const auto own = to_size(room.rows + tall_tile.rows);
    rows = std::max(rows, own);
    inputs = std::max(inputs, own * to_size(padded_row(room.ins)));
  }
  const bool fine = finest == input_bits::sixteen;
  q_ = aligned_buffer<std::int8_t>(inputs + 64);
  low_ = aligned_buffer<std::int8_t>(fine && !kernels.wide_inputs ? inputs + 64 : 0);
  wide_ = aligned_buffer<std::int16_t>(kernels.wide_inputs ? inputs : 0);
  scales_ = aligned_buffer<float>(rows);
  sums_ = aligned_buffer<std::int32_t>(rows);
  group_sums_ = aligned_buffer<std::int32_t>(inputs / 32);
}

// Rows that only fill the last tile keep what an earlier pass left: harmless, their outputs are never written.
void quantized_rows::begin(int rows, std::int64_t ins, input_bits bits) {
  tile_shape tile = tile_for(kernels_, rows);
  if (bits == input_bits::sixteen && tile.together == 4) tile.rows = fine_tile_rows;
  view_ = {.rows = rows,
           .tile = tile,
           .ins = padded_row(ins),
           .bits = bits,
           .q = q_.data(),
           .low = low_.data(),
           .wide = wide_.data(),
           .scales = scales_.data(),
           .sums = sums_.data(),
           .group_sums = group_sums_.data()};
}

void quantized_rows::begin_groups(int rows, std::int64_t ins, tile_shape tile) {
  begin(rows, ins);
  view_.tile = tile;
}

quantized_view quantized_rows::group(int first, int rows) const {
  const auto from = [&](auto* data, std::int64_t of_row) { return data ? data + first * of_row : nullptr; };
  quantized_view part = view_;
  part.rows = rows;
  part.q = from(view_.q, view_.ins);
  part.low = from(view_.low, view_.ins);
  part.wide = from(view_.wide, view_.ins);
  part.scales = from(view_.scales, 1);
  part.sums = from(view_.sums, 1);
  part.group_sums = from(view_.group_sums, view_.ins / 32);
  return part;
}

void quantized_rows::put(int row, const float* x) {
  const auto at = to_size(row);
  const std::int64_t first_row = row / view_.tile.rows * view_.tile.rows;
  const auto of_tile = [&](auto& buffer) { return buffer.size() ? buffer.data() + first_row * view_.ins : nullptr; };
  kernels_.quantize(x, view_.ins,
                    {.tile = view_.tile,
                     .in_tile = row % view_.tile.rows,
                     .bits = view_.bits,
                     .q = of_tile(q_),
                     .low = of_tile(low_),
                     .wide = of_tile(wide_),
                     .scale = &scales_[at],
                     .sum = &sums_[at],
                     .group_sums = group_sums_.data() + first_row * (view_.ins / 32)});
}

void quantized_rows::assign(thread_pool& pool, const float* x, std::int64_t stride, int rows, std::int64_t ins,
                            input_bits bits) {
  begin(rows, ins, bits);
  constexpr int at_once = 16;
  pool.run(ceil_div(rows, at_once), [&](int task, int) {
    for (int row = task * at_once; row < std::min(rows, (task + 1) * at_once); ++row) put(row, x + row * stride);
  });
}

void multiply_blocks(const kernel_table& kernels, const matmul_args& job, std::int64_t first, std::int64_t last) {
  // experts' rows are described as integers, too, where they are multiplied as floats
  const bool is_tiled = is_integer(job.w.kind) && job.q.tile.together == tall_tile.together;
  (is_tiled ? kernels.tiled_matmul : kernels.matmul)(job, first, last);
}

void matmul(const compute& with, std::span<const matmul_args> jobs, std::span<const adapted_job> adapters) {
  const std::int64_t step = blocks_per_task(jobs, with.pool.threads());
  int shrinks = 0, expands = 0;
  for (const auto& adapted : adapters) shrinks += row_tiles(adapted);
  for (const auto& job : jobs) expands += static_cast<int>(ceil_div(blocks_of(job), step));
  std::atomic<int> shrunk = 0;
  const auto shrink = [&](int task) {
    for (const auto& adapted : adapters) {
      if (task < row_tiles(adapted)) {
        with.kernels.shrink(rows_from(adapted.adapter, task * low_rank_rows));
        break;
      }
      task -= row_tiles(adapted);
    }
    shrunk.fetch_add(1, std::memory_order_release);
  };
  const auto make_outputs = [&](std::size_t job, std::int64_t first) {
    const std::int64_t last = std::min(first + step, end_of(jobs[job]));
    fetch_list factors = factors_for(adapters, job, first, last);
    matmul_args product = jobs[job];
    product.read_after = &factors;
    multiply_blocks(with.kernels, product, first, last);
    // Tasks are taken in order, so all A x have been made, or are being made by threads that wait for nobody.
    while (shrunk.load(std::memory_order_acquire) < shrinks) __builtin_ia32_pause();
    for (const auto& adapted : adapters)
      if (adapted.job == job) with.kernels.expand(adapted.adapter, first, last);
  };
  with.pool.run(shrinks + expands, [&](int task, int) {
    if (task < shrinks) return shrink(task);
    std::int64_t first = (task - shrinks) * step;
    for (std::size_t job = 0; job < jobs.size(); ++job) {
      const std::int64_t span = rounded_up(blocks_of(jobs[job]), step);
      if (first < span) return make_outputs(job, jobs[job].first_block + first);
      first -= span;
    }
  });
}

}  // namespace troupe
