// Products with inputs in 16 bits, as training makes them. Compiled once per ISA.
#include "model/ops/matmul_tile.hpp"

namespace troupe::TROUPE_ISA {
namespace {

constexpr int sums_of_row = sizeof(fine_sums) / sizeof(sums);
/// So many rows of a tile have their sums of a block in registers, beside its weights and one input.
constexpr int rows = fine_tile_rows * sums_of_row + 2 <= vectors_in_registers ? fine_tile_rows : fine_tile_rows / 2;

/// s += the products of four inputs of each row, the first of which is at `x`.
template <int Blocks>
INLINED inline void multiply_fine(const weights (&w)[Blocks], const quantized_view& q, std::int64_t x,
                                  fine_sums (&s)[rows][Blocks]) {
  repeat<byte_parts>([&](int part) INLINED {
    byte_part v[Blocks];
    repeat<Blocks>([&](int b) INLINED { v[b] = part_of(w[b], part); });
    repeat<rows>([&](int r) INLINED {
      const fine_inputs i = load_fine_inputs(q, x + r * 4, part);
      repeat<Blocks>([&](int b) INLINED { s[r][b] = dot(s[r][b], v[b], i); });
    });
  });
}

/// The products of a segment: inputs [from, to) of the rows of a tile whose inputs begin at `x`.
template <scheme Kind, int Blocks>
INLINED inline void multiply_segment(const matmul_args& a, std::int64_t block, std::int64_t x, std::int64_t from,
                                     std::int64_t to, fine_sums (&s)[rows][Blocks]) {
  constexpr std::int64_t per_load = has_nibbles(Kind) ? 8 : 4;
  const std::int64_t ins = a.q.ins, block_bytes = packed_block_bytes(Kind, ins);
  const std::uint8_t* w = bytes_of(a) + block * block_bytes + from / per_load * 64;
  x += from * fine_tile_rows;
  for (std::int64_t k = from; k < to; k += per_load, w += 64, x += per_load * fine_tile_rows) {
    weights v[Blocks];
    repeat<Blocks>([&](int b) INLINED {
      fetch_ahead(w + (b + Blocks) * block_bytes);
      v[b] = load_weights(w + b * block_bytes);
      if constexpr (has_nibbles(Kind)) v[b] = levels_of<Kind>(low_nibbles(v[b]));
    });
    multiply_fine(v, a.q, x, s);
    if constexpr (has_nibbles(Kind)) {
      repeat<Blocks>([&](int b) INLINED { v[b] = levels_of<Kind>(high_nibbles(load_weights(w + b * block_bytes))); });
      multiply_fine(v, a.q, x + 4 * fine_tile_rows, s);
    }
  }
}

template <scheme Kind, int Blocks>
void fine_tile(const matmul_args& a, std::int64_t tile, int in_tile, std::int64_t block) {
  using reader = group_reader<Kind>;
  const std::int64_t first = tile * fine_tile_rows + in_tile, ins = a.q.ins;
  const std::int64_t x = tile * fine_tile_rows * ins + in_tile * 4;
  const std::int32_t* group_sums = a.q.group_sums + tile * fine_tile_rows * (ins / 32) + in_tile;
  f32x16 y[rows][Blocks];
  repeat<rows>([&](int r) INLINED { repeat<Blocks>([&](int b) INLINED { y[r][b] = zero(); }); });
  for (std::int64_t from = 0; from < ins; from += fine_segment<Kind>) {
    const std::int64_t to = from + fine_segment<Kind> < ins ? from + fine_segment<Kind> : ins;
    fine_sums s[rows][Blocks];
    float totals[rows];
    repeat<rows>([&](int r) INLINED {
      std::int32_t total = 0;
      for (std::int64_t g = from / 32; g < to / 32; ++g) total += group_sums[g * fine_tile_rows + r];
      totals[r] = static_cast<float>(total);
      repeat<Blocks>([&](int b) INLINED { s[r][b] = start_fine(-zero_point_of(Kind) * total); });
    });
    in_memory(y);
    multiply_segment<Kind>(a, block, x, from, to, s);
    fine_sums done[rows][Blocks];
    repeat<rows>([&](int r) INLINED { repeat<Blocks>([&](int b) INLINED { done[r][b] = s[r][b]; }); });
    in_memory(done);
    repeat<Blocks>([&](int b) INLINED {
      const std::int64_t index = (block + b) * a.w.groups() + (group_of(Kind) > 0 ? from / fine_segment<Kind> : 0);
      const f32x16 scale = reader::factors(a.w.scales, index);
      repeat<rows>([&](int r) INLINED {
        y[r][b] = fma(to_float(whole(done[r][b])), scale, y[r][b]);
        if constexpr (has_mids(Kind)) y[r][b] = fma(reader::factors(a.w.mids, index), all(totals[r]), y[r][b]);
      });
    });
  }
  repeat<rows>([&](int r) INLINED {
    repeat<Blocks>([&](int b) INLINED {
      if (first + r < a.rows) finish(a, first + r, block + b, y[r][b] * all(a.q.scales[first + r]));
    });
  });
}

template <scheme Kind, int Blocks>
void fine_tiles(const matmul_args& a, std::int64_t first, std::int64_t last, std::int64_t block) {
  for (std::int64_t tile = first; tile < last; ++tile)
    for (int in_tile = 0; in_tile < fine_tile_rows; in_tile += rows) fine_tile<Kind, Blocks>(a, tile, in_tile, block);
}

template <scheme Kind>
void sweep(const matmul_args& a, std::int64_t first_block, std::int64_t last_block) {
  constexpr int at_once = vectors_in_registers < 32 ? 1 : 2;
  const std::int64_t tiles = (a.rows + fine_tile_rows - 1) / fine_tile_rows,
                     near = chunk_bytes / (2 * fine_tile_rows * a.q.ins) + 1;
  for (std::int64_t first = 0; first < tiles; first += near) {
    const std::int64_t last = first + near < tiles ? first + near : tiles;
    std::int64_t block = first_block;
    for (; block + at_once <= last_block; block += at_once) fine_tiles<Kind, at_once>(a, first, last, block);
    for (; block < last_block; ++block) fine_tiles<Kind, 1>(a, first, last, block);
  }
}

}  // namespace

void fine_matmul(const matmul_args& a, std::int64_t first_block, std::int64_t last_block) {
  with_scheme(a.w.kind, [&]<scheme Kind>() {
    if constexpr (is_integer(Kind)) sweep<Kind>(a, first_block, last_block);
  });
}

}  // namespace troupe::TROUPE_ISA
