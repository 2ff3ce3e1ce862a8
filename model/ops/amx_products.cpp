// Products of integers by Intel's AMX, 16 rows with 16 outputs at a time. Sums of integers are exact in any order, and
// what is done to them is what matmul_kernels.cpp does: so the bits are the same.
#include "model/ops/amx_parts.hpp"

namespace troupe::TROUPE_ISA {
namespace {

// ---- u8: one scale for the whole row ----

void finish_u8(const matmul_args& a, std::int64_t tile, std::int64_t block, const sums (&s)[height]) {
  const whole_row_factors factors(a, block);
  for_rows(a, tile, [&](int r, std::int64_t row) INLINED {
    finish(a, row, block,
           factors.value(s[r] + start(-128 * a.q.sums[row]), static_cast<float>(a.q.sums[row]), a.q.scales[row]));
  });
}

/// `is_first`: nothing has read these weights before.
template <int Tiles, int Blocks>
void u8_tiles(const matmul_args& a, std::int64_t tile, std::int64_t block, bool is_first) {
  const std::int64_t bytes = a.q.ins * height;
  const std::int8_t* x = inputs_of(a, tile);
  const std::uint8_t* w = bytes_of(a) + block * bytes;
  repeat<Tiles * Blocks>([&](auto i) INLINED { clear_tile<i>(); });
  for (std::int64_t at = 0; at < bytes; at += part_bytes) {
    repeat<Tiles>([&](auto t) INLINED { load_tile<4 + t>(x + t * bytes + at, part_inputs); });
    repeat<Blocks>([&](auto b) INLINED {
      load_tile<6 + b % 2>(w + b * bytes + at, part_inputs);
      if (is_first) fetch_lines(w + (b + Blocks) * bytes + at);
      repeat<Tiles>([&](auto t) INLINED { multiply_unsigned<t * Blocks + b, 4 + t, 6 + b % 2>(); });
    });
    if (const std::byte* lines = next_lines(a.read_after)) fetch_lines(lines);
  }
  sums s[Tiles * Blocks][height];
  repeat<Tiles * Blocks>([&](auto i) INLINED { store_tile<i>(s[i], sizeof(sums)); });
  for (int i = 0; i < Tiles * Blocks; ++i) finish_u8(a, tile + i / Blocks, block + i % Blocks, s[i]);
}

/// Few rows: more blocks instead, so that there are as many sums at work.
void u8_product(const matmul_args& a, std::int64_t first_tile, std::int64_t last_tile, std::int64_t first_block,
                std::int64_t last_block) {
  const tiles_in_use<64> tiles;
  std::int64_t block = first_block;
  if (last_tile - first_tile == 1)
    for (; block + 4 <= last_block; block += 4) u8_tiles<1, 4>(a, first_tile, block, true);
  for (; block + 2 <= last_block; block += 2) {
    std::int64_t tile = first_tile;
    for (; tile + 2 <= last_tile; tile += 2) u8_tiles<2, 2>(a, tile, block, tile == first_tile);
    if (tile < last_tile) u8_tiles<1, 2>(a, tile, block, tile == first_tile);
  }
  if (block < last_block)
    for (std::int64_t tile = first_tile; tile < last_tile; ++tile) u8_tiles<1, 1>(a, tile, block, tile == first_tile);
}

// ---- u8g64, q8, q4, u4g32, mxfp4: a scale per group of inputs ----

template <scheme Kind>
void grouped_tile(const matmul_args& a, std::int64_t tile, std::int64_t block, bool is_first) {
  using reader = group_reader<Kind>;
  constexpr int groups_of_part = part_inputs / reader::group;
  const std::int64_t groups = a.w.groups(), parts = a.q.ins / part_inputs;
  const std::int8_t* x = inputs_of(a, tile);
  const std::uint8_t* w = bytes_of(a) + block * parts * packed_part_bytes<Kind>;
  const std::int32_t* input_sums = a.q.group_sums + tile * height * (a.q.ins / 32);
  weights codes[2][height];
  sums s[2][groups_of_part][height];
  f32x16 y[height];
  repeat<height>([&](int r) INLINED { y[r] = zero(); });

  const auto unpack = [&](std::int64_t part)
                          INLINED { unpack_part<Kind>(w + part * packed_part_bytes<Kind>, codes[part % 2]); };
  const auto multiply = [&](std::int64_t part, auto side) INLINED {
    repeat<groups_of_part>([&](auto g) INLINED {
      load_tile<4 + g>(x + part * part_bytes + g * reader::group, part_inputs);
      load_tile<6 + g>(codes[side] + g * (reader::group / 4), sizeof(weights));
      clear_tile<2 * side + g>();
      multiply_signed<2 * side + g, 4 + g, 6 + g>();
    });
  };
  const auto keep = [&](auto side) INLINED {
    repeat<groups_of_part>([&](auto g) INLINED { store_tile<2 * side + g>(s[side][g], sizeof(sums)); });
  };
  const auto add = [&](std::int64_t part, int side) INLINED {
    repeat<groups_of_part>([&](int g) INLINED {
      const std::int64_t group = part * groups_of_part + g, index = block * groups + group;
      const f32x16 scale = reader::factors(a.w.scales, index);
      repeat<height>([&](int r) INLINED { y[r] = fma(to_float(s[side][g][r]), scale, y[r]); });
      if constexpr (has_mids(Kind)) {
        const f32x16 mid = reader::factors(a.w.mids, index);
        repeat<height>([&](int r) INLINED {
          const std::int32_t sum = reader::input_sum(input_sums + r, height, group);
          y[r] = fma(mid, all(static_cast<float>(sum)), y[r]);
        });
      }
    });
  };
  // What a step begins a later one needs, since each takes its time: a part is unpacked, multiplied, its sums are kept,
  // and added.
  const auto step = [&](std::int64_t part, auto side) INLINED {
    if (part < parts) {
      if (is_first) fetch_lines<packed_part_bytes<Kind> / 64>(w + (parts + part) * packed_part_bytes<Kind>);
      multiply(part, side);
    }
    if (part + 1 < parts) unpack(part + 1);
    if (part > 0 && part <= parts) keep(number<1 - side>{});
    if (part > 1 && part < parts + 2) add(part - 2, side);
  };
  unpack(0);
  for (std::int64_t part = 0; part < parts + 2; part += 2) {
    step(part, number<0>{});
    step(part + 1, number<1>{});
  }
  repeat<height>([&](int r) INLINED {
    const std::int64_t row = tile * height + r;
    if (row < a.rows) finish(a, row, block, y[r] * all(a.q.scales[row]));
  });
}

template <scheme Kind>
void grouped_product(const matmul_args& a, std::int64_t first_tile, std::int64_t last_tile, std::int64_t first_block,
                     std::int64_t last_block) {
  const tiles_in_use<group_reader<Kind>::group> tiles;
  for (std::int64_t block = first_block; block < last_block; ++block)
    for (std::int64_t tile = first_tile; tile < last_tile; ++tile)
      grouped_tile<Kind>(a, tile, block, tile == first_tile);
}

}  // namespace

tiled_product product_of(scheme kind) {
  return with_scheme(kind, []<scheme Kind>() -> tiled_product {
    if constexpr (Kind == scheme::u8)
      return u8_product;
    else if constexpr (is_integer(Kind))
      return grouped_product<Kind>;
    else
      return nullptr;
  });
}

void tiled_matmul(const matmul_args& a, std::int64_t first_block, std::int64_t last_block) {
  const std::int64_t tiles = (a.rows + height - 1) / height, at_once = chunk_bytes / (height * a.q.ins) / 2 * 2 + 2;
  const tiled_product make = (a.q.bits == input_bits::sixteen ? fine_product_of : product_of)(a.w.kind);
  for (std::int64_t tile = 0; tile < tiles; tile += at_once)
    make(a, tile, tile + at_once < tiles ? tile + at_once : tiles, first_block, last_block);
}

std::int64_t spin_tiles(std::int64_t rounds) {
  const tiles_in_use<64> tiles;
  const std::int8_t numbers[part_bytes] = {1, -1, 2};
  repeat<4>([&](auto i) INLINED { clear_tile<i>(), load_tile<4 + i>(numbers, part_inputs); });
  for (std::int64_t i = 0; i < rounds; ++i)
    repeat<4>([&](auto s) INLINED { multiply_unsigned<s, 4 + s / 2, 6 + s % 2>(); });
  return rounds * 4 * 2 * height * part_bytes;
}

}  // namespace troupe::TROUPE_ISA
