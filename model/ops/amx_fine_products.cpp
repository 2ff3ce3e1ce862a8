// Products by AMX with inputs in 16 bits, as training makes them: the bits are those of fine_matmul_kernels.cpp.
#include "model/ops/amx_parts.hpp"

namespace troupe::TROUPE_ISA {
namespace {

/// That share a segment, and fit into a register.
template <scheme Kind>
constexpr int inputs_at_once = fine_segment<Kind> > part_inputs ? part_inputs : static_cast<int>(fine_segment<Kind>);

/// What products subtract from codes by themselves: what was not when these were unpacked.
template <scheme Kind>
constexpr std::int32_t less_than_codes = Kind == scheme::u8 ? zero_point_of(Kind) : 0;

/// What a segment of inputs adds to the outputs: 256 times the sums of their high parts, and those of their low parts.
template <scheme Kind>
INLINED inline void add_segment(const matmul_args& a, std::int64_t tile, std::int64_t block, std::int64_t from,
                                std::int64_t to, const sums (&high)[height], const sums (&low)[height],
                                f32x16 (&y)[height]) {
  using reader = group_reader<Kind>;
  const std::int64_t of_tile = a.q.ins / 32, group = group_of(Kind) > 0 ? from / fine_segment<Kind> : 0;
  const std::int32_t* group_sums = a.q.group_sums + tile * height * of_tile;
  const f32x16 scale = reader::factors(a.w.scales, block * a.w.groups() + group);
  std::int32_t totals[height] = {};
  for (std::int64_t g = from / 32; g < to / 32; ++g)
    for (int r = 0; r < height; ++r) totals[r] += group_sums[g * height + r];
  repeat<height>([&](int r) INLINED {
    const sums whole = times_256(high[r]) + low[r] + start(-less_than_codes<Kind> * totals[r]);
    y[r] = fma(to_float(whole), scale, y[r]);
  });
  if constexpr (has_mids(Kind)) {
    const f32x16 mid = reader::factors(a.w.mids, block * a.w.groups() + group);
    repeat<height>([&](int r) INLINED { y[r] = fma(mid, all(static_cast<float>(totals[r])), y[r]); });
  }
}

/// Sums of high parts are made in registers 0 and 1, those of low parts in 2 and 3.
template <scheme Kind, int Blocks>
void fine_tile(const matmul_args& a, std::int64_t tile, std::int64_t block, bool is_first) {
  const std::int64_t ins = a.q.ins, first = tile * height, block_bytes = packed_block_bytes(Kind, ins);
  const std::int8_t *high = a.q.q + first * ins, *low = a.q.low + first * ins;
  const std::uint8_t* w = bytes_of(a) + block * block_bytes;
  weights codes[Blocks][height];
  sums of_high[Blocks][height], of_low[Blocks][height];
  f32x16 y[Blocks][height];
  repeat<Blocks>([&](int b) INLINED { repeat<height>([&](int r) INLINED { y[b][r] = zero(); }); });

  const auto multiply = [&](auto b, std::int64_t part, std::int64_t in_part) INLINED {
    const std::uint8_t* of_part = w + b * block_bytes + part * packed_part_bytes<Kind>;
    if (is_first && in_part == 0) fetch_lines<packed_part_bytes<Kind> / 64>(of_part + Blocks * block_bytes);
    if constexpr (Kind == scheme::u8) {
      load_tile<6 + b>(of_part, part_inputs);
      multiply_unsigned<b, 4, 6 + b>(), multiply_unsigned<2 + b, 5, 6 + b>();
    } else {
      if (in_part == 0) unpack_part<Kind>(of_part, codes[b]);
      load_tile<6 + b>(codes[b] + in_part / 4, sizeof(weights));
      multiply_signed<b, 4, 6 + b>(), multiply_signed<2 + b, 5, 6 + b>();
    }
  };
  for (std::int64_t from = 0; from < ins; from += fine_segment<Kind>) {
    const std::int64_t to = from + fine_segment<Kind> < ins ? from + fine_segment<Kind> : ins;
    repeat<Blocks>([&](auto b) INLINED { clear_tile<b>(), clear_tile<2 + b>(); });
    for (std::int64_t i = from; i < to; i += inputs_at_once<Kind>) {
      const std::int64_t part = i / part_inputs, in_part = i % part_inputs;
      load_tile<4>(high + part * part_bytes + in_part, part_inputs);
      load_tile<5>(low + part * part_bytes + in_part, part_inputs);
      repeat<Blocks>([&](auto b) INLINED { multiply(b, part, in_part); });
    }
    repeat<Blocks>(
        [&](auto b) INLINED { store_tile<b>(of_high[b], sizeof(sums)), store_tile<2 + b>(of_low[b], sizeof(sums)); });
    for (int b = 0; b < Blocks; ++b) add_segment<Kind>(a, tile, block + b, from, to, of_high[b], of_low[b], y[b]);
  }
  for (int b = 0; b < Blocks; ++b)
    for_rows(a, tile,
             [&](int r, std::int64_t row) INLINED { finish(a, row, block + b, y[b][r] * all(a.q.scales[row])); });
}

template <scheme Kind>
void fine_product(const matmul_args& a, std::int64_t first_tile, std::int64_t last_tile, std::int64_t first_block,
                  std::int64_t last_block) {
  const tiles_in_use<inputs_at_once<Kind>> tiles;
  std::int64_t block = first_block;
  for (; block + 2 <= last_block; block += 2)
    for (std::int64_t tile = first_tile; tile < last_tile; ++tile)
      fine_tile<Kind, 2>(a, tile, block, tile == first_tile);
  for (std::int64_t tile = first_tile; block < last_block && tile < last_tile; ++tile)
    fine_tile<Kind, 1>(a, tile, block, tile == first_tile);
}

}  // namespace

tiled_product fine_product_of(scheme kind) {
  return with_scheme(kind, []<scheme Kind>() -> tiled_product {
    if constexpr (is_integer(Kind))
      return fine_product<Kind>;
    else
      return nullptr;
  });
}

}  // namespace troupe::TROUPE_ISA
