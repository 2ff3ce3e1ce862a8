#include "model/arch/cuda/pass_tables.hpp"
#include "base/blocks.hpp"
#include "base/to_size.hpp"

#include <algorithm>
#include <bit>

namespace troupe {
namespace {

constexpr int tile_numbers = 3;
static_assert(sizeof(cuda::attention_tile) == tile_numbers * sizeof(std::int32_t));
static_assert(sizeof(cuda::lora_tile) == tile_numbers * sizeof(std::int32_t));

/// Where tables begin: tokens, positions, sequences, block tables, attention tiles, adapter tiles.
struct layout {
  std::size_t positions, sequences, blocks, attention, lora, end;

  explicit layout(const pass_shape& shape) {
    const auto rows = to_size(shape.rows);
    positions = rows;
    sequences = positions + rows;
    blocks = sequences + rows;
    attention = blocks + to_size(shape.sequences) * to_size(shape.blocks);
    const int attention_tiles = shape.attention_tiles + shape.wide_attention_tiles;
    lora = attention + to_size(attention_tiles * tile_numbers);
    end = lora + to_size(shape.lora_tiles * tile_numbers);
  }
};

int blocks_of(const pass_sequence& sequence) {
  return static_cast<int>(blocks_for(sequence.position + sequence.rows));
}

/// Runs of rows with one adapter, cut into tiles.
template <class Visit>
void for_lora_tiles(const pass& batch, int most_rows, Visit visit) {
  for (std::size_t s = 0; s < batch.sequences.size();) {
    const pass_sequence& first = batch.sequences[s];
    int end = first.first_row;
    for (; s < batch.sequences.size() && batch.sequences[s].adapter == first.adapter; ++s)
      end += batch.sequences[s].rows;
    if (!first.adapter) continue;
    for (int row = first.first_row; row < end; row += most_rows)
      visit(*first.adapter, row, std::min(most_rows, end - row));
  }
}

int power_of_two(int n) {
  return static_cast<int>(std::bit_ceil(static_cast<unsigned>(n)));
}

}  // namespace

bool is_decode(const pass& batch) {
  return std::all_of(batch.sequences.begin(), batch.sequences.end(), [](const auto& s) { return s.rows == 1; });
}

/// A decode pass is filled up to a power of two.
pass_tables::pass_tables(int most_rows, int most_sequences, std::int64_t context, int group)
    : most_rows_(most_rows), most_blocks_(static_cast<int>(blocks_for(context))), group_(group) {
  const layout most(pass_shape{.rows = most_rows,
                               .sequences = std::min(power_of_two(most_sequences), most_rows),
                               .blocks = most_blocks_,
                               .attention_tiles = most_rows * cuda::attention_tiles(1, group),
                               .lora_tiles = most_rows});
  host_ = cuda::pinned_buffer<std::int32_t>(most.end);
  device_ = cuda::device_buffer<std::int32_t>(most.end);
}

pass_shape pass_tables::shape_of(const pass& batch) const {
  pass_shape shape{batch.rows, static_cast<int>(batch.sequences.size())};
  for (const pass_sequence& sequence : batch.sequences) {
    shape.blocks = std::max(shape.blocks, blocks_of(sequence));
    if (cuda::wants_wide_tiles(sequence.rows, group_))
      shape.wide_attention_tiles += cuda::wide_attention_tiles(sequence.rows, group_);
    else
      shape.attention_tiles += cuda::attention_tiles(sequence.rows, group_);
  }
  const bool decodes = is_decode(batch);
  shape.lora_tile_rows = decodes ? cuda::small_lora_tile_rows : cuda::lora_tile_rows;
  for_lora_tiles(batch, shape.lora_tile_rows, [&](const lora_adapter&, int, int) { ++shape.lora_tiles; });
  if (!decodes) return shape;
  shape.rows = shape.sequences = std::min(power_of_two(batch.rows), most_rows_);
  shape.blocks = std::min(power_of_two(shape.blocks), most_blocks_);
  shape.attention_tiles = shape.rows * cuda::attention_tiles(1, group_);
  if (shape.lora_tiles > 0) shape.lora_tiles = std::min(power_of_two(shape.lora_tiles), shape.rows);
  return shape;
}

pass_shape pass_tables::fill(const pass& batch, std::span<const std::int32_t> tokens, const device_adapters& adapters) {
  uploaded_.wait();
  const pass_shape shape = shape_of(batch);
  const layout at(shape);
  std::int32_t* const all = host_.data();
  std::fill_n(all, at.sequences, -1);  // tokens and positions
  std::fill(all + at.sequences, all + at.end, 0);
  std::copy(tokens.begin(), tokens.end(), all);
  auto* tile = reinterpret_cast<cuda::attention_tile*>(all + at.attention);
  auto* wide_tile = tile + shape.attention_tiles;
  for (std::size_t s = 0; s < batch.sequences.size(); ++s) {
    const pass_sequence& sequence = batch.sequences[s];
    for (int i = 0; i < sequence.rows; ++i) {
      const auto row = to_size(sequence.first_row + i);
      all[at.positions + row] = static_cast<std::int32_t>(sequence.position) + i;
      all[at.sequences + row] = static_cast<std::int32_t>(s);
    }
    std::copy_n(sequence.blocks, blocks_of(sequence), all + at.blocks + s * to_size(shape.blocks));
    const bool is_wide = cuda::wants_wide_tiles(sequence.rows, group_);
    auto& next_tile = is_wide ? wide_tile : tile;
    const int queries = is_wide ? cuda::wide_tile_queries : cuda::tile_queries;
    for (int query = 0; query < sequence.rows * group_; query += queries)
      *next_tile++ = {sequence.first_row, sequence.rows, query};
  }
  auto* lora = reinterpret_cast<cuda::lora_tile*>(all + at.lora);
  for_lora_tiles(batch, shape.lora_tile_rows, [&](const lora_adapter& adapter, int row, int rows) {
    *lora++ = {row, rows, adapters.place_of(adapter)};
  });
  return shape;
}

void pass_tables::upload(const pass_shape& shape, const cuda::stream& on) {
  cuda::copy(device_.data(), host_.data(), layout(shape).end, on);
  uploaded_.record(on);
}

cuda::row_places pass_tables::places(const pass_shape& shape) const {
  const layout at(shape);
  return {device_.data() + at.sequences, device_.data() + at.positions, device_.data() + at.blocks, shape.blocks};
}

const cuda::attention_tile* pass_tables::attention_tiles(const pass_shape& shape) const {
  return reinterpret_cast<const cuda::attention_tile*>(device_.data() + layout(shape).attention);
}

const cuda::lora_tile* pass_tables::lora_tiles(const pass_shape& shape) const {
  return reinterpret_cast<const cuda::lora_tile*>(device_.data() + layout(shape).lora);
}

}  // namespace troupe
