// Adapters' two products over ragged rows: one grid for all tiles of rows and all products that share an input. Factors
// lie as model/ops/kernels.hpp says: [block of 16 outputs][input][16].
//
// Both are about reading factors once, at the speed of the memory: a thread reads eight outputs of an input at a time,
// and several inputs before it uses any. Factors, tiles and the table are there before a pass begins, so the first of
// these reads do not wait for the last kernel.
#include <cassert>
#include <type_traits>

#include "model/ops/cuda/kernel.hpp"
#include "model/ops/cuda/ops.hpp"

namespace troupe::cuda {
namespace {

constexpr int lanes = outs_per_block, eight = 8, sides = lanes / eight, four = 4;
constexpr int most_parts = 4;  // of the inputs, added in order
constexpr int shrink_threads = 256, inputs_at_once = shrink_threads / sides * four;
constexpr int expand_threads = 128, outs_at_once = expand_threads * eight;
constexpr int few_tile_rows = 2;  // as of passes with many adapters

/// Eight neighbours of a factor.
template <factor_kind Kind>
struct eight_weights {
  using word = std::conditional_t<Kind == factor_kind::i8, uint2, uint4>;
  static constexpr int bytes = bytes_of(Kind), words = bytes * eight / static_cast<int>(sizeof(word));
  word of[words] = {};

  __device__ void load(const std::byte* factor, std::int64_t index) {
    const auto* from = reinterpret_cast<const word*>(factor + index * bytes);
    for (auto& to : of) to = *from++;
  }
  __device__ void values(float (&to)[eight]) const {
    const auto* parts = reinterpret_cast<const std::uint32_t*>(of);
    constexpr int in_part = 4 / bytes;
#pragma unroll
    for (int i = 0; i < eight; ++i) to[i] = value(parts[i / in_part], i % in_part);
  }

 private:
  __device__ static float value(std::uint32_t part, int i) {
    if constexpr (Kind == factor_kind::f32) return __int_as_float(static_cast<int>(part));
    if constexpr (Kind == factor_kind::f16) return f16_value(static_cast<std::uint16_t>(part >> 16 * i));
    return static_cast<float>(static_cast<std::int8_t>(part >> 8 * i));
  }
};

/// Some neighbouring inputs of a row.
template <int Width>
struct inputs {
  float of[Width];
};

/// sums[row] += x(row) times the weights of some inputs, in order; as many rows at a time as registers allow.
template <factor_kind Kind, int Width, int Rows, class RowInputs>
__device__ void add_products(const eight_weights<Kind> (&weights)[Width], RowInputs x, float (&sums)[Rows][eight]) {
  constexpr int at_once = Rows < 4 ? Rows : 4;
#pragma unroll
  for (int first = 0; first < Rows; first += at_once) {
    inputs<Width> of_rows[at_once];
#pragma unroll
    for (int r = 0; r < at_once; ++r) of_rows[r] = x(first + r);
#pragma unroll
    for (int i = 0; i < Width; ++i) {
      float values[eight];
      weights[i].values(values);
#pragma unroll
      for (int r = 0; r < at_once; ++r)
        for (int e = 0; e < eight; ++e) sums[first + r][e] = fmaf(values[e], of_rows[r].of[i], sums[first + r][e]);
    }
  }
}

/// Those of a thread's inputs that are read ahead, as many as registers allow: `Width` neighbours from `first` on, as
/// many from first + step on … below `last`.
template <factor_kind Kind, int Width, int Count>
struct weights_ahead {
  using neighbours = eight_weights<Kind>[Width];
  neighbours of[Count];
  const std::byte* factor;
  std::int64_t start;  ///< of input 0
  int first, step, last;

  __device__ weights_ahead(const std::byte* factor_, std::int64_t start_, int first_, int step_, int last_)
      : factor(factor_), start(start_), first(first_), step(step_), last(last_) {
#pragma unroll
    for (int c = 0; c < Count; ++c) load(of[c], first + c * step);
  }
  __device__ void load(neighbours& to, int input) {
#pragma unroll
    for (int i = 0; i < Width; ++i) {
      to[i] = {};
      if (input + i < last) to[i].load(factor, start + std::int64_t{input + i} * lanes);
    }
  }
  /// use(input, weights from it on), in order; what is not below `last` has weights of zero.
  template <class Use>
  __device__ void each(Use use) {
    for (int input = first; input < last; input += Count * step)
#pragma unroll
      for (int c = 0; c < Count; ++c) {
        neighbours now;
#pragma unroll
        for (int i = 0; i < Width; ++i) now[i] = of[c][i];
        load(of[c], input + (Count + c) * step);
        use(input + c * step, now);
      }
  }
};

__device__ lora_factors factors_of(const lora_args& a, const lora_tile& tile, int target) {
  return tile.rows > 0 ? a.table[tile.adapter * a.table_stride + a.targets[target].linear] : lora_factors{};
}

/// go_on(kind, rows) with constants: what a factor is kept in, and how many rows are made room for.
template <int MostRows, class GoOn>
__device__ void with_shape(factor_kind kind, int rows, GoOn go_on) {
  const auto with_rows = [&](auto constant_kind) {
    rows <= few_tile_rows ? go_on(constant_kind, std::integral_constant<int, few_tile_rows>())
                          : go_on(constant_kind, std::integral_constant<int, MostRows>());
  };
  switch (kind) {
    case factor_kind::f32:
      return with_rows(std::integral_constant<factor_kind, factor_kind::f32>());
    case factor_kind::f16:
      return with_rows(std::integral_constant<factor_kind, factor_kind::f16>());
    case factor_kind::i8:
      return with_rows(std::integral_constant<factor_kind, factor_kind::i8>());
  }
}

__host__ __device__ std::int64_t between_stride(int rank) {
  return rounded_up(rank, lanes);
}
/// A x of a row, by parts of the inputs.
__device__ float* between_row(const lora_args& a, int row, int target, int part) {
  const std::int64_t of_target = static_cast<std::int64_t>(row) * most_products + target;
  return a.between + (of_target * most_parts + part) * between_stride(a.most_rank);
}

/// The inputs' width alone decides.
__host__ __device__ int part_inputs(std::int64_t ins) {
  return static_cast<int>(rounded_up((ins + most_parts - 1) / most_parts, inputs_at_once));
}
__host__ __device__ int parts_of(std::int64_t ins) {
  const int inputs = part_inputs(ins);
  return static_cast<int>((ins + inputs - 1) / inputs);
}

using rank_sums = float[lora_tile_rows][lanes];

/// Inputs of a row that begins at a multiple of 16 bytes, zeros from `last` on: what lies there may be anything.
__device__ inputs<four> four_inputs(const float* row, int input, int last) {
  const float4 x = *reinterpret_cast<const float4*>(row + min(input, (last - 1) / four * four));
  if (input + four <= last) return {x.x, x.y, x.z, x.w};
  return {input < last ? x.x : 0.0f, input + 1 < last ? x.y : 0.0f, input + 2 < last ? x.z : 0.0f, 0.0f};
}

/// Adds up what the lanes with the same side of a warp have. In each step a lane gives away half of its numbers and
/// gets the other half's partners, so that it has fewer and fewer to add.
template <int Rows>
__device__ void add_lanes(float (&sums)[Rows][eight], rank_sums& of_warp) {
  const int lane = threadIdx.x % 32;
  auto& numbers = reinterpret_cast<float(&)[Rows * eight]>(sums);
  int count = Rows * eight, first = 0;
#pragma unroll
  for (int step = 16; step >= sides; step /= 2) {
    count /= 2;
    const bool is_upper = lane & step;
    first += is_upper ? count : 0;
#pragma unroll
    for (int i = 0; i < Rows * eight / 2; ++i) {
      if (i >= count) break;
      const float own = is_upper ? numbers[i + count] : numbers[i], given = is_upper ? numbers[i] : numbers[i + count];
      numbers[i] = own + __shfl_xor_sync(whole_warp, given, step);
    }
  }
#pragma unroll
  for (int i = 0; i < Rows * eight / 16; ++i)
    of_warp[(first + i) / eight][lane % sides * eight + (first + i) % eight] = numbers[i];
}

/// A thread's inputs are four neighbours, and those `inputs_at_once` further on.
template <factor_kind Kind, int Rows>
__device__ void sum_part(const lora_args& a, const lora_tile& tile, const lora_factors& f, int block, int part,
                         rank_sums& of_warp) {
  const int side = threadIdx.x % sides, first = part * part_inputs(a.ins) + threadIdx.x / sides * four;
  const int last = min((part + 1) * part_inputs(a.ins), static_cast<int>(a.ins));
  constexpr int ahead = Rows > few_tile_rows || Kind == factor_kind::f32 ? 1 : 2;
  weights_ahead<Kind, four, ahead> weights(f.a, std::int64_t{block} * f.a_ins * lanes + side * eight, first,
                                           inputs_at_once, last);
  await_last_kernel();
  const float* x = a.x.row(tile.first_row);
  const int stride = static_cast<int>(a.x.stride);
  float sums[Rows][eight] = {};
  weights.each([&](int input, const eight_weights<Kind>(&now)[four]) {
    add_products(
        now, [&](int r) { return four_inputs(x + min(r, tile.rows - 1) * stride, input, last); }, sums);
  });
  add_lanes(sums, of_warp);
}

template <int MostRows>
__global__ void __launch_bounds__(shrink_threads, MostRows <= small_lora_tile_rows ? 3 : 2) shrink_tiles(lora_args a) {
  __shared__ rank_sums of_warp[shrink_threads / 32];
  const lora_tile tile = a.tiles[blockIdx.x];
  const int parts = parts_of(a.ins), target = blockIdx.y / parts, part = blockIdx.y % parts, block = blockIdx.z;
  const lora_factors f = factors_of(a, tile, target);
  if (!f.a || block * lanes >= f.rank) return await_last_kernel();
  with_shape<MostRows>(f.a_kind, tile.rows, [&](auto kind, auto rows) {
    sum_part<kind, rows>(a, tile, f, block, part, of_warp[threadIdx.x / 32]);
  });
  __syncthreads();
  const int row = threadIdx.x / lanes, lane = threadIdx.x % lanes;
  if (row >= tile.rows) return;
  float total = 0;
  for (const auto& sums : of_warp) total += sums[row][lane];
  between_row(a, tile.first_row + row, target, part)[block * lanes + lane] = total;
}

/// Which blocks of threads make a target's outputs: those from first_block on.
struct expand_places {
  int first_block[most_products];
  int parts;
};
struct expand_place {
  int target = 0, block;  ///< of the target

  __device__ expand_place(const expand_places& places, int targets) : block(blockIdx.y) {
#pragma unroll
    for (int t = 1; t < static_cast<int>(most_products); ++t)
      if (t < targets && static_cast<int>(blockIdx.y) >= places.first_block[t]) {
        target = t;
        block = static_cast<int>(blockIdx.y) - places.first_block[t];
      }
  }
};

struct between_sums {
  float of[lora_tile_rows * most_adapter_rank];
};

/// scales * A x of the tile's rows: [row, rank]
__device__ void add_parts(const lora_args& a, const lora_tile& tile, const lora_factors& f, int target, int parts,
                          between_sums& between) {
  for (int i = threadIdx.x; i < tile.rows * f.rank; i += expand_threads) {
    const float* of_part = between_row(a, tile.first_row + i / f.rank, target, 0) + i % f.rank;
    float values[most_parts] = {}, total = 0;
#pragma unroll
    for (int p = 0; p < most_parts; ++p)
      if (p < parts) values[p] = of_part[p * between_stride(a.most_rank)];
    for (const float value : values) total += value;
    between.of[i] = total * f.scales[i % f.rank];
  }
}

/// y of eight outputs from `out` on; where the outputs end, fewer.
struct output_eight {
  float* y;
  int left;

  __device__ void read(float (&values)[eight]) const {
    if (left >= eight) {
      const auto* from = reinterpret_cast<const float4*>(y);
      const float4 a = from[0], b = from[1];
      values[0] = a.x, values[1] = a.y, values[2] = a.z, values[3] = a.w;
      values[4] = b.x, values[5] = b.y, values[6] = b.z, values[7] = b.w;
      return;
    }
    for (int e = 0; e < eight; ++e) values[e] = e < left ? y[e] : 0.0f;
  }
  __device__ void write(const float (&values)[eight]) const {
    if (left >= eight) {
      auto* to = reinterpret_cast<float4*>(y);
      to[0] = {values[0], values[1], values[2], values[3]};
      to[1] = {values[4], values[5], values[6], values[7]};
      return;
    }
    for (int e = 0; e < eight; ++e)
      if (e < left) y[e] = values[e];
  }
};

template <factor_kind Kind, int Rows>
__device__ void add_outputs(const lora_args& a, const lora_tile& tile, const lora_factors& f, const expand_place& place,
                            int parts, between_sums& between) {
  const int target = place.target, out = place.block * outs_at_once + threadIdx.x * eight;
  const int left = static_cast<int>(a.targets[target].outs) - out, last = left > 0 ? f.rank : 0;
  constexpr int halves_ahead = Rows <= few_tile_rows ? 16 : Rows <= small_lora_tile_rows ? 8 : 4;
  weights_ahead<Kind, 1, Kind == factor_kind::f32 ? halves_ahead / 2 : halves_ahead> weights(
      f.b, std::int64_t{out / lanes} * f.rank * lanes + out % lanes, 0, 1, last);
  await_last_kernel();
  const float_rows y = a.targets[target].y;
  const auto outputs_of = [&](int r) { return output_eight{y.row(tile.first_row + r) + out, left}; };
  constexpr bool has_room = Rows <= small_lora_tile_rows;  // for what was there, while the sums are made
  constexpr int at_once = has_room ? Rows : Rows / 2;      // read before any is written, so that they come together
  float before[at_once][eight], sums[Rows][eight] = {};
  const auto read_rows = [&](int first) {
#pragma unroll
    for (int r = 0; r < at_once; ++r)
      if (first + r < tile.rows) outputs_of(first + r).read(before[r]);
  };
  if (has_room) read_rows(0);
  add_parts(a, tile, f, target, parts, between);
  __syncthreads();
  weights.each([&](int rank, const eight_weights<Kind>(&now)[1]) {
    const int known = min(rank, f.rank - 1);
    const auto of_row = [&](int r) { return inputs<1>{between.of[min(r, tile.rows - 1) * f.rank + known]}; };
    add_products(now, of_row, sums);
  });
#pragma unroll
  for (int first = 0; first < Rows; first += at_once) {
    if (!has_room) read_rows(first);
#pragma unroll
    for (int r = first; r < first + at_once; ++r) {
      if (r >= tile.rows) return;
      for (int e = 0; e < eight; ++e) sums[r][e] = before[r - first][e] + sums[r][e];
      outputs_of(r).write(sums[r]);
    }
  }
}

/// y += B between, a thread eight outputs.
template <int MostRows>
__global__ void __launch_bounds__(expand_threads, 4) expand_tiles(lora_args a, expand_places places) {
  [[maybe_unused]] __shared__ between_sums between;
  const lora_tile tile = a.tiles[blockIdx.x];
  const expand_place place(places, a.target_count);
  const lora_factors f = factors_of(a, tile, place.target);
  if (!f.a) return await_last_kernel();
  with_shape<MostRows>(f.b_kind, tile.rows, [&](auto kind, auto rows) {
    add_outputs<kind, rows>(a, tile, f, place, places.parts, between);
  });
}

template <int MostRows>
void start_lora(const stream& on, const lora_args& args) {
  const auto tiles = static_cast<unsigned>(args.tile_count);
  expand_places places{{}, parts_of(args.ins)};
  int blocks = 0;
  for (int i = 0; i < args.target_count; ++i) {
    places.first_block[i] = blocks;
    blocks += static_cast<int>(ceil_div(args.targets[i].outs, outs_at_once));
  }
  launch_early("lora", shrink_tiles<MostRows>,
               dim3(tiles, static_cast<unsigned>(args.target_count * places.parts), grid_for(args.most_rank, lanes)),
               shrink_threads, on, args);
  launch_early("lora", expand_tiles<MostRows>, dim3(tiles, static_cast<unsigned>(blocks)), expand_threads, on, args,
               places);
}

}  // namespace

std::int64_t lora_between_floats(int rows, int rank) {
  return static_cast<std::int64_t>(rows) * static_cast<std::int64_t>(most_products) * most_parts * between_stride(rank);
}

void lora(const stream& on, const lora_args& args) {
  assert(args.most_rank <= most_adapter_rank);  // adapters of higher rank are refused while they are loaded
  (args.most_tile_rows <= small_lora_tile_rows ? start_lora<small_lora_tile_rows> : start_lora<lora_tile_rows>)(on,
                                                                                                                args);
}

}  // namespace troupe::cuda
