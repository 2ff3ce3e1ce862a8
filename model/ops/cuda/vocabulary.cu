// The two ends of a model: a token's vector, and the token with the largest logit.
#include "model/ops/cuda/activations.hpp"
#include "model/ops/cuda/codes.hpp"
#include "model/ops/cuda/factors.hpp"

namespace troupe::cuda {
namespace {

/// Fours of a row of a packed matrix: model/ops/matrix.hpp says where they lie.
struct packed_table {
  scheme kind;
  int ins, stored_ins, groups;
  const std::byte *weights, *scales, *mids;
};
template <scheme Kind>
struct table_reader : packed_table {
  __device__ float4 four(std::int64_t out, int in) const {
    const std::int64_t block = out / outs_per_block, lane = out % outs_per_block;
    if constexpr (Kind == scheme::f32)
      return floats(block, lane, in);
    else if constexpr (Kind == scheme::bf16)
      return bf16_pairs(block, lane, in);
    else
      return integers(block, lane, in);
  }

 private:
  __device__ float4 floats(std::int64_t block, std::int64_t lane, int in) const {
    const auto element = [&](int i) {
      const auto* all = reinterpret_cast<const float*>(weights);
      return in + i < ins ? all[(block * stored_ins + in + i) * outs_per_block + lane] : 0.0f;
    };
    return {element(0), element(1), element(2), element(3)};
  }

  /// The word at `index`, of which each output has one.
  __device__ std::uint32_t word(std::int64_t index, std::int64_t lane) const {
    return reinterpret_cast<const std::uint32_t*>(weights)[index * outs_per_block + lane];
  }

  __device__ float4 bf16_pairs(std::int64_t block, std::int64_t lane, int in) const {
    const auto pair = [&](int i) { return i < ins ? word((block * stored_ins + i) / 2, lane) : 0u; };
    const auto low = [](std::uint32_t both) { return bf16_value(static_cast<std::uint16_t>(both)); };
    const auto high = [](std::uint32_t both) { return bf16_value(static_cast<std::uint16_t>(both >> 16)); };
    const std::uint32_t first = pair(in), second = pair(in + 2);
    return {low(first), high(first), low(second), high(second)};
  }

  __device__ float4 integers(std::int64_t block, std::int64_t lane, int in) const {
    constexpr bool nibbles = has_nibbles(Kind);
    const std::uint32_t both = word((block * stored_ins + in) / (nibbles ? 8 : 4), lane);
    const std::uint32_t numbers = !nibbles ? both : (in % 8 >= 4 ? both >> 4 : both) & 0x0f0f0f0fu;
    const int group = group_of(Kind) ? in / static_cast<int>(group_of(Kind)) : 0;
    const std::int64_t index = (block * groups + group) * outs_per_block + lane;
    const float factor = factor_at(Kind, scales, index), mid = has_mids(Kind) ? factor_at(Kind, mids, index) : 0.0f;
    const auto element = [&](int i) {
      const int z = weight_number<Kind>(numbers >> (8 * i) & 255);
      const float product = static_cast<float>(z) * factor;
      return has_mids(Kind) ? mid + product : product;
    };
    return {element(0), element(1), element(2), element(3)};
  }
};

/// The scheme is known before the row is read: so all reads can be under way at the same time.
template <scheme Kind, class Share>
__device__ void read_row(const packed_table& table, std::int32_t token, held_row<Share>& row) {
  const table_reader<Kind> reader{table};
  const int last = (table.ins - 1) / 4;  // is read again where there is nothing: so no read waits for a branch
  row.each([&](int j, int place) { row.of[j] = reader.four(token, min(place, last) * 4); });
}
template <class Share>
__device__ void read_any_row(const packed_table& table, std::int32_t token, held_row<Share>& row) {
  with_scheme(table.kind, [&]<scheme Kind> { read_row<Kind>(table, token, row); });
}

template <class Share>
__global__ void __launch_bounds__(Share::threads, Share::least_blocks) embed_rows(embed_args a, packed_table table) {
  await_last_kernel();
  const std::int32_t token = a.tokens[blockIdx.x];
  held_row<Share> row = {};
  if (token >= 0) {
    read_any_row(table, token, row);
    row.each([&](int j, int) { row.of[j] = change([&](float v) { return v * a.factor; }, row.of[j]); });
    if (a.learned) {
      const float* learned = a.learned + a.positions[blockIdx.x] * a.learned_stride;
      row.each([&](int j, int place) {
        row.of[j] =
            change([](float v, float by) { return v + by; }, row.of[j], row.load_four(learned, place, table.ins));
      });
    }
  }
  row.store(a.out.row(blockIdx.x), table.ins);
}

constexpr int logit_threads = 256;

__global__ void __launch_bounds__(logit_threads) finish_row_parts(finish_logits_args a) {
  await_last_kernel();
  const std::int64_t i = std::int64_t{blockIdx.y} * logit_threads + threadIdx.x;
  if (i >= a.n) return;
  float& logit = a.logits.row(blockIdx.x)[i];
  logit *= a.factor;
  if (a.cap == 0) return;
  const soft_cap cap{a.cap};
  logit = cap(logit);
  if (a.slopes.data) a.slopes.row(blockIdx.x)[i] = cap.slope(logit) * a.factor;
}

/// A logit and its place; of equal ones the first wins, and what is not a number never.
struct candidate {
  float logit;
  std::int32_t token;
};
__device__ candidate better(candidate a, candidate b) {
  return b.logit > a.logit || (b.logit == a.logit && b.token < a.token) ? b : a;
}
__device__ candidate best_of_warp(candidate best) {
  for (unsigned step = 16; step > 0; step /= 2)
    best = better(best, {__shfl_xor_sync(whole_warp, best.logit, step), __shfl_xor_sync(whole_warp, best.token, step)});
  return best;
}

constexpr int row_parts = 16, part_threads = 256;  // a row is many blocks': one could not ask for so much memory
constexpr int fours_at_once = 8;

struct logits_view {
  const float* data;
  std::int64_t stride;
  int vocabulary;
};

/// The best of a part of a row.
__global__ void __launch_bounds__(part_threads) find_candidates(logits_view logits, candidate* candidates) {
  await_last_kernel();
  const float* row = logits.data + blockIdx.x * logits.stride;
  const int none = logits.vocabulary, per_part = (none + 4 * row_parts - 1) / (4 * row_parts);
  const int end = min((static_cast<int>(blockIdx.y) + 1) * per_part * 4, none);
  candidate best{minus_infinity, none};
  const auto look_at = [&](float logit, int place) {
    if (place < end) best = better(best, {logit, place});
  };
  for (int first = (blockIdx.y * per_part + threadIdx.x) * 4; first < end; first += fours_at_once * part_threads * 4) {
    float4 fours[fours_at_once] = {};
#pragma unroll
    for (int j = 0; j < fours_at_once; ++j) {
      const int place = first + j * part_threads * 4;
      if (place < end) fours[j] = *reinterpret_cast<const float4*>(row + place);
    }
#pragma unroll
    for (int j = 0; j < fours_at_once; ++j) {
      const int place = first + j * part_threads * 4;
      look_at(fours[j].x, place);
      look_at(fours[j].y, place + 1);
      look_at(fours[j].z, place + 2);
      look_at(fours[j].w, place + 3);
    }
  }
  const row_values<candidate>& all = share_warps(best_of_warp(best));
  for (int w = 0; w < row_warps(); ++w) best = better(best, all.of_warp[w]);
  if (threadIdx.x == 0) candidates[blockIdx.x * row_parts + blockIdx.y] = best;
}

/// A warp for a row.
__global__ void pick_candidates(const candidate* candidates, int vocabulary, std::int32_t* tokens) {
  await_last_kernel();
  const candidate none{minus_infinity, vocabulary};
  const candidate best =
      best_of_warp(threadIdx.x < row_parts ? candidates[blockIdx.x * row_parts + threadIdx.x] : none);
  if (threadIdx.x == 0) tokens[blockIdx.x] = best.token < vocabulary ? best.token : 0;
}

}  // namespace

void embed(const stream& on, const embed_args& args) {
  const matrix_view& t = args.table;
  const packed_table table{t.kind,
                           static_cast<int>(t.ins),
                           static_cast<int>(t.stored_ins()),
                           static_cast<int>(t.groups()),
                           t.weights,
                           t.scales,
                           t.mids};
  for_parts(t.ins, [&](auto share, unsigned blocks) {
    launch_early("embed", embed_rows<decltype(share)>, dim3(static_cast<unsigned>(args.rows), blocks), share.threads,
                 on, args, table);
  });
}

void finish_logits(const stream& on, const finish_logits_args& args) {
  const dim3 grid(static_cast<unsigned>(args.rows), grid_for(args.n, logit_threads));
  launch_early("finish_logits", finish_row_parts, grid, logit_threads, on, args);
}

std::int64_t argmax_scratch_floats(int rows) {
  return std::int64_t{rows} * row_parts * static_cast<std::int64_t>(sizeof(candidate) / sizeof(float));
}

void argmax(const stream& on, const argmax_args& args) {
  auto* const candidates = reinterpret_cast<candidate*>(args.scratch);
  const logits_view logits{args.logits.data, args.logits.stride, static_cast<int>(args.vocabulary)};
  launch_early("argmax", find_candidates, dim3(static_cast<unsigned>(args.rows), row_parts), part_threads, on, logits,
               candidates);
  launch_early("argmax", pick_candidates, args.rows, 32, on, candidates, logits.vocabulary, args.tokens);
}

}  // namespace troupe::cuda
