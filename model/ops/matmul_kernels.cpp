// Products with inputs in int8, or in f32. Compiled once per ISA.
#include "model/ops/matmul_tile.hpp"

namespace troupe::TROUPE_ISA {
namespace {

constexpr int prefetch_ahead = 4096;  // bytes of floats, when one row reads them as fast as memory gives

/// s += the products of four inputs of each row.
template <int Rows, int Blocks>
INLINED inline void multiply_bytes(const std::uint8_t* w, std::int64_t block_bytes, const byte_input* x,
                                   sums (&s)[Rows][Blocks]) {
  repeat<Blocks>([&](int b) INLINED { fetch_ahead(w + (b + Blocks) * block_bytes); });
  repeat<byte_parts>([&](int part) INLINED {
    byte_part v[Blocks];
    repeat<Blocks>([&](int b) INLINED { v[b] = part_of(load_weights(w + b * block_bytes), part); });
    repeat<Rows>([&](int r) INLINED {
      const inputs i = load_inputs(x + r * 4, part);
      repeat<Blocks>([&](int b) INLINED { s[r][b] = dot(s[r][b], v[b], i); });
    });
  });
}

// ---- u8: one scale for the whole row ----

/// Sums of one block, [rows], `step` apart. Not inlined: its registers would drive the sums out of theirs.
[[gnu::noinline]] void finish_u8(const matmul_args& a, std::int64_t first, std::int64_t block, const sums* s, int rows,
                                 int step) {
  const whole_row_factors factors(a, block);
  const std::int64_t last = first + rows < a.rows ? first + rows : a.rows;
  for (std::int64_t row = first; row < last; ++row, s += step)
    finish(a, row, block, factors.value(*s, static_cast<float>(a.q.sums[row]), a.q.scales[row]));
}

template <int Rows, int Blocks>
void u8_tile(const matmul_args& a, std::int64_t tile, int in_tile, std::int64_t block) {
  const std::int64_t first = tile * a.q.tile.rows + in_tile, ins = a.q.ins;
  const byte_input* x = byte_inputs(a.q) + tile * a.q.tile.rows * ins + in_tile * 4;
  const std::uint8_t* w = bytes_of(a) + block * ins * lanes;
  sums s[Rows][Blocks];
  repeat<Rows>([&](int r)
                   INLINED { repeat<Blocks>([&](int b) INLINED { s[r][b] = start(-128 * a.q.sums[first + r]); }); });
  const auto multiply = [&](std::int64_t k)
                            INLINED { multiply_bytes(w + k * lanes, ins * lanes, x + k * a.q.tile.rows, s); };
  std::int64_t k = 0;
  const std::byte* lines = nullptr;
  while (k < ins && (lines = next_lines(a.read_after)))
    for (int i = 0; i < lines_at_once; ++i, k += 4) {
      fetch_ahead(lines + i * 64);
      multiply(k);
    }
  for (; k < ins; k += 4) multiply(k);
  sums done[Rows][Blocks];
  repeat<Rows>([&](int r) INLINED { repeat<Blocks>([&](int b) INLINED { done[r][b] = s[r][b]; }); });
  for (int b = 0; b < Blocks; ++b) finish_u8(a, first, block + b, &done[0][b], Rows, Blocks);
}

// ---- u8g64, q8, q4, u4g32, mxfp4: a scale per group of inputs ----

/// The products of one group of bytes; each row's sums start at its number.
template <scheme Kind, int Rows, int Blocks>
INLINED inline void group_of_bytes(const std::uint8_t* w, std::int64_t block_bytes, const byte_input* x, int step,
                                   const std::int32_t (&starts)[Rows], sums (&s)[Rows][Blocks]) {
  repeat<Rows>([&](int r) INLINED { repeat<Blocks>([&](int b) INLINED { s[r][b] = start(starts[r]); }); });
  for (int four = 0; four < group_reader<Kind>::group / 4; ++four, w += 64, x += step)
    multiply_bytes(w, block_bytes, x, s);
}

/// s += the products of four inputs of each row with nibbles.
template <int Rows, int Blocks>
INLINED inline void multiply_nibbles(const weights (&w)[Blocks], const std::int8_t* x, nibble_sums (&s)[Rows][Blocks]) {
  repeat<Rows>([&](int r) INLINED {
    const nibble_inputs i = load_nibble_inputs(x + r * 4);
    repeat<Blocks>([&](int b) INLINED { s[r][b] = dot(s[r][b], w[b], i); });
  });
}

/// For few rows high nibbles are multiplied where they are, which spares a shift for each load: their sums are
/// whole sixteens, so the division at the end is exact. Levels must be looked up by the nibble itself.
constexpr bool sixteens_apart(scheme kind, int rows) {
  return sixteens_fit && !has_levels(kind) && rows <= (totals_in_registers ? 2 : 1);
}

/// The products of some inputs with nibbles, eight at a time; each row's sums start at its number.
template <scheme Kind, int Inputs, int Rows, int Blocks>
INLINED inline void run_of_nibbles(const std::uint8_t* w, std::int64_t block_bytes, const std::int8_t* x, int step,
                                   const std::int32_t (&starts)[Rows], sums (&s)[Rows][Blocks]) {
  constexpr bool apart = sixteens_apart(Kind, Rows);
  nibble_sums low[Rows][Blocks], high[Rows][Blocks];
  repeat<Rows>([&](int r) INLINED {
    repeat<Blocks>([&](int b) INLINED {
      low[r][b] = start_nibbles(starts[r]);
      if constexpr (apart) high[r][b] = start_nibbles(0);
    });
  });
  for (int eight = 0; eight < Inputs / 8; ++eight, w += 64, x += 2 * step) {
    weights v[Blocks], half[Blocks];
    repeat<Blocks>([&](int b) INLINED {
      fetch_ahead(w + (b + Blocks) * block_bytes);
      v[b] = load_weights(w + b * block_bytes);
      half[b] = levels_of<Kind>(low_nibbles(v[b]));
    });
    multiply_nibbles(half, x, low);
    repeat<Blocks>([&](int b) INLINED {
      if constexpr (apart)
        half[b] = high_sixteens(v[b]);
      else
        half[b] = levels_of<Kind>(high_nibbles(v[b]));
    });
    multiply_nibbles(half, x + step, apart ? high : low);
  }
  repeat<Rows>([&](int r) INLINED {
    repeat<Blocks>([&](int b) INLINED {
      s[r][b] = whole(low[r][b]);
      if constexpr (apart) s[r][b] = s[r][b] + sixteenth(high[r][b]);
    });
  });
}

/// The products of one group of nibbles; where their sums hold half of that, of its halves.
template <scheme Kind, int Rows, int Blocks>
INLINED inline void group_of_nibbles(const std::uint8_t* w, std::int64_t block_bytes, const std::int8_t* x, int step,
                                     const std::int32_t (&starts)[Rows], sums (&s)[Rows][Blocks]) {
  constexpr int group = group_reader<Kind>::group;
  if constexpr (!has_levels(Kind) || inputs_of_levels >= group) {
    run_of_nibbles<Kind, group>(w, block_bytes, x, step, starts, s);
  } else {
    static_assert(2 * inputs_of_levels == group);
    constexpr std::int32_t nothing[Rows] = {};
    sums later[Rows][Blocks];
    run_of_nibbles<Kind, group / 2>(w, block_bytes, x, step, nothing, s);
    run_of_nibbles<Kind, group / 2>(w + group / 16 * 64, block_bytes, x + group / 8 * step, step, nothing, later);
    repeat<Rows>([&](int r) INLINED {
      repeat<Blocks>([&](int b) INLINED { s[r][b] = s[r][b] + later[r][b] + start(starts[r]); });
    });
  }
}

/// The products of one group; `x` counts inputs from the tile's first.
template <scheme Kind, int Rows, int Blocks>
INLINED inline void group_products(const std::uint8_t* w, std::int64_t block_bytes, const quantized_view& q,
                                   std::int64_t x, const std::int32_t (&starts)[Rows], sums (&s)[Rows][Blocks]) {
  if constexpr (has_nibbles(Kind))
    group_of_nibbles<Kind>(w, block_bytes, q.q + x, q.tile.rows * 4, starts, s);
  else
    group_of_bytes<Kind>(w, block_bytes, byte_inputs(q) + x, q.tile.rows * 4, starts, s);
}

template <scheme Kind, int Rows, int Blocks>
void grouped_tile(const matmul_args& a, std::int64_t tile, int in_tile, std::int64_t block) {
  using reader = group_reader<Kind>;
  const std::int64_t first = tile * a.q.tile.rows + in_tile, ins = a.q.ins, groups = ins / reader::group;
  const std::int64_t x = tile * a.q.tile.rows * ins + in_tile * 4;
  const std::int32_t* input_sums = a.q.group_sums + tile * a.q.tile.rows * (ins / 32) + in_tile;
  const std::int64_t block_bytes = groups * reader::weight_bytes;
  const std::uint8_t* w = bytes_of(a) + block * block_bytes;
  f32x16 y[Rows][Blocks];
  repeat<Rows>([&](int r) INLINED { repeat<Blocks>([&](int b) INLINED { y[r][b] = zero(); }); });
  for (std::int64_t g = 0; g < groups; ++g) {
    sums s[Rows][Blocks];
    std::int32_t starts[Rows];
    float total[Rows];
    repeat<Rows>([&](int r) INLINED {
      const std::int32_t sum = reader::input_sum(input_sums + r, a.q.tile.rows, g);
      total[r] = static_cast<float>(sum);
      starts[r] = -zero_point_of(Kind) * sum;
    });
    group_products<Kind>(w + g * reader::weight_bytes, block_bytes, a.q, x + g * reader::group * a.q.tile.rows, starts,
                         s);
    repeat<Blocks>([&](int b) INLINED {
      const std::int64_t index = (block + b) * groups + g;
      const f32x16 scale = reader::factors(a.w.scales, index);
      repeat<Rows>([&](int r) INLINED {
        y[r][b] = fma(to_float(s[r][b]), scale, y[r][b]);
        if constexpr (has_mids(Kind)) y[r][b] = fma(reader::factors(a.w.mids, index), all(total[r]), y[r][b]);
      });
    });
  }
  repeat<Rows>([&](int r) INLINED {
    repeat<Blocks>([&](int b) INLINED {
      if (first + r < a.rows) finish(a, first + r, block + b, y[r][b] * all(a.q.scales[first + r]));
    });
  });
}

// ---- f32, bf16 ----

template <scheme Kind, int Rows, int Blocks>
void float_tile(const matmul_args& a, std::int64_t first, std::int64_t block) {
  constexpr std::int64_t size = Kind == scheme::bf16 ? 2 : 4;
  const std::int64_t ins = a.w.stored_ins(), block_bytes = ins * lanes * size;
  const std::uint8_t* w = bytes_of(a) + block * block_bytes;
  const float* x = a.x + first * a.x_stride;
  f32x16 y[Rows][Blocks];
  repeat<Rows>([&](int r) INLINED { repeat<Blocks>([&](int b) INLINED { y[r][b] = zero(); }); });
  const auto multiply = [&](std::int64_t k, const f32x16(&v)[Blocks]) INLINED {
    repeat<Rows>([&](int r) INLINED {
      const f32x16 input = all(x[r * a.x_stride + k]);
      repeat<Blocks>([&](int b) INLINED { y[r][b] = fma(v[b], input, y[r][b]); });
    });
  };
  for (std::int64_t k = 0; k < ins; k += 2, w += 2 * lanes * size) {
    f32x16 even[Blocks], odd[Blocks];
    repeat<Blocks>([&](int b) INLINED {
      const std::uint8_t* at = w + b * block_bytes;
      if constexpr (Rows == 1) __builtin_prefetch(at + prefetch_ahead);
      if constexpr (Kind == scheme::bf16) {
        load_bf16_pairs(reinterpret_cast<const std::uint16_t*>(at), even[b], odd[b]);
      } else {
        even[b] = load(reinterpret_cast<const float*>(at));
        odd[b] = load(reinterpret_cast<const float*>(at) + lanes);
      }
    });
    multiply(k, even);
    multiply(k + 1, odd);
  }
  repeat<Rows>([&](int r)
                   INLINED { repeat<Blocks>([&](int b) INLINED { finish(a, first + r, block + b, y[r][b]); }); });
}

// ---- which tile for how many rows ----

/// How many blocks of so many rows have their sums in registers, beside a block's weights and one input.
constexpr int blocks_that_fit(scheme kind, int rows) {
  const bool totals = group_of(kind) > 0 && totals_in_registers;
  return (vectors_in_registers - 1) / ((totals ? 2 : 1) * rows + 1);
}
/// The taller part of a tile whose rows are halved until they fit.
constexpr int rows_at_once(scheme kind, int rows) {
  return blocks_that_fit(kind, rows) > 0 ? rows : rows_at_once(kind, (rows + 1) / 2);
}
constexpr int blocks_at_once(scheme kind, int rows) {
  if (group_of(kind) > 0 && rows == 1) return 2;
  const int fit = blocks_that_fit(kind, rows_at_once(kind, rows));
  return fit > 4 ? 4 : fit;
}

template <scheme Kind, int Rows, int Blocks>
void tile_of(const matmul_args& a, std::int64_t tile, int in_tile, std::int64_t block) {
  if constexpr (Rows > rows_at_once(Kind, Rows)) {
    tile_of<Kind, (Rows + 1) / 2, Blocks>(a, tile, in_tile, block);
    tile_of<Kind, Rows / 2, Blocks>(a, tile, in_tile + (Rows + 1) / 2, block);
  } else if constexpr (Kind == scheme::u8) {
    u8_tile<Rows, Blocks>(a, tile, in_tile, block);
  } else if constexpr (is_integer(Kind)) {
    grouped_tile<Kind, Rows, Blocks>(a, tile, in_tile, block);
  } else {
    float_tile<Kind, Rows, Blocks>(a, tile + in_tile, block);
  }
}

/// How a tile of some rows is done: several blocks at once, then the last ones singly.
struct tile_plan {
  int blocks;
  void (*many)(const matmul_args&, std::int64_t tile, int in_tile, std::int64_t block);
  void (*one)(const matmul_args&, std::int64_t tile, int in_tile, std::int64_t block);
};

template <scheme Kind, int... Rows>
tile_plan plan_of(int rows) {
  static_assert(!is_integer(Kind) || sizeof...(Rows) == most_tile_rows);
  static constexpr tile_plan plans[] = {
      {blocks_at_once(Kind, Rows), tile_of<Kind, Rows, blocks_at_once(Kind, Rows)>, tile_of<Kind, Rows, 1>}...};
  return plans[rows - 1];
}

tile_plan plan_for(scheme kind, int rows) {
  return with_scheme(kind, [&]<scheme Kind>() {
    if constexpr (is_integer(Kind))
      return plan_of<Kind, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12>(rows);
    else
      return plan_of<Kind, 1, 2, 3, 4, 5, 6>(rows);
  });
}

void sweep(const matmul_args& a, tile_plan plan, std::int64_t first_tile, std::int64_t last_tile,
           std::int64_t tile_step, std::int64_t first_block, std::int64_t last_block) {
  for (std::int64_t block = first_block; block < last_block;) {
    const bool many = block + plan.blocks <= last_block;
    for (std::int64_t tile = first_tile; tile < last_tile; tile += tile_step)
      (many ? plan.many : plan.one)(a, tile, 0, block);
    block += many ? plan.blocks : 1;
  }
}

/// Integer rows lie in tiles already; the sweep counts tiles.
void integer_matmul(const matmul_args& a, std::int64_t first_block, std::int64_t last_block) {
  const std::int64_t row_bytes = has_nibbles(a.w.kind) ? 1 : sizeof(byte_input);
  const tile_plan plan = plan_for(a.w.kind, a.q.tile.rows);
  const std::int64_t tiles = (a.rows + a.q.tile.rows - 1) / a.q.tile.rows,
                     at_once = chunk_bytes / (a.q.tile.rows * a.q.ins * row_bytes) + 1;
  for (std::int64_t tile = 0; tile < tiles; tile += at_once)
    sweep(a, plan, tile, tile + at_once < tiles ? tile + at_once : tiles, 1, first_block, last_block);
}

/// Float rows are counted singly: some at a time, then the rest.
void float_matmul(const matmul_args& a, std::int64_t first_block, std::int64_t last_block) {
  constexpr std::int64_t most = vectors_in_registers < 12 ? vectors_in_registers / 2 : 6;
  const std::int64_t at_once = (chunk_bytes / (a.w.stored_ins() * 4 * most) + 1) * most;
  for (std::int64_t row = 0; row < a.rows; row += at_once) {
    const std::int64_t end = row + at_once < a.rows ? row + at_once : a.rows;
    const std::int64_t whole = row + (end - row) / most * most;
    if (row < whole) sweep(a, plan_for(a.w.kind, most), row, whole, most, first_block, last_block);
    if (whole < end)
      sweep(a, plan_for(a.w.kind, static_cast<int>(end - whole)), whole, end, most, first_block, last_block);
  }
}

}  // namespace

void matmul(const matmul_args& a, std::int64_t first_block, std::int64_t last_block) {
  if (!is_integer(a.w.kind)) return float_matmul(a, first_block, last_block);
  (a.q.bits == input_bits::sixteen ? fine_matmul : integer_matmul)(a, first_block, last_block);
}

}  // namespace troupe::TROUPE_ISA
