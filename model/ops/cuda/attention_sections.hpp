// For kernel sources alone: a section of keys and values in shared memory, and what a warp makes of it with tensor
// cores. All kernels of attention use these functions, so a query's sums over a section are the same to the bit,
// whoever makes them.
#pragma once
#include "model/ops/cuda/attention.hpp"

namespace troupe::cuda {

constexpr int block_slots = static_cast<int>(block_tokens);
constexpr int section_blocks = section_positions / block_slots;
constexpr int section_eights = section_positions / 8;

/// f(i) for i from 0 to Count - 1, each by one of the block's threads.
template <int Count, int Threads, class F>
__device__ void for_threads(F f) {
#pragma unroll
  for (unsigned first = 0; first < Count; first += Threads)
    if (Count % Threads == 0 || first + threadIdx.x < Count) f(first + threadIdx.x);
}

/// The ids of a section's blocks. Blocks that the tile does not see are not read: another takes their place, and
/// nothing of it counts.
struct block_ids {
  std::int32_t of[section_blocks] = {};

  __device__ void read(const tile_span& span, int section) {
    const int first = span.from / block_slots, last = (span.to - 1) / block_slots;
#pragma unroll
    for (int b = 0; b < section_blocks; ++b) of[b] = span.table[min(max(section * section_blocks + b, first), last)];
  }
};

/// Keys or values of a section in f16, a position a row. Eight numbers are a piece, and pieces lie so that a column of
/// eight of them is in all banks.
template <int Steps>
struct position_rows {
  static constexpr int row_pieces = 2 * Steps;
  uint4 pieces[section_positions * row_pieces];

  __device__ uint4* piece(unsigned row, unsigned place) { return &pieces[row * row_pieces + (place ^ row % 8)]; }
  __device__ const uint4* piece(unsigned row, unsigned place) const {
    return &pieces[row * row_pieces + (place ^ row % 8)];
  }
};
template <int Steps>
struct section_rows {
  position_rows<Steps> keys, values;
};

/// The shared memory in which a block of threads has sections: start() lets one come, ready() is called when it has
/// come and makes of it what rows() gives. With Stages above 1 the next section may start while rows() are still read.
template <kv_kind Kind, int Steps, int Stages>
struct section_memory;

template <int Steps, int Stages>
struct section_memory<kv_kind::f16, Steps, Stages> {
  section_rows<Steps> stages[Stages];

  template <int Threads>
  __device__ void start(const kv_layer& cache, const tile_span& span, int kv_head, int section, const block_ids& ids) {
    section_rows<Steps>& to = stages[section % Stages];
    constexpr int row_pieces = position_rows<Steps>::row_pieces;
#pragma unroll
    for (int b = 0; b < section_blocks; ++b) {
      const head_block<std::uint16_t> block(cache, ids.of[b], kv_head);
      for_threads<block_slots * row_pieces, Threads>([&](unsigned i) {
        const unsigned slot = i / row_pieces, place = i % row_pieces, row = b * block_slots + slot;
        const bool is_there =
            static_cast<int>(place) * 8 < block.padded_dim && span.sees(section * section_positions + row);
        copy_async_or_clear(to.keys.piece(row, place), &block.key(slot, place * 8), is_there);
        copy_async_or_clear(to.values.piece(row, place), &block.value(slot, place * 8), is_there);
      });
    }
    close_copies();
  }
  template <int Threads>
  __device__ void ready(const tile_span&, int) {}
  __device__ const section_rows<Steps>& rows(int section) const {
    return stages[section % Stages];
  }
  __device__ float key_scale(int) const {
    return 1.0f;
  }
};

/// Integers come as they are, and become f16 when all have come.
template <int Steps, int Stages>
struct section_memory<kv_kind::i8, Steps, Stages> {
  static constexpr int row_bytes = 16 * Steps;
  section_rows<Steps> unpacked;
  float key_scales[section_positions];
  struct {
    alignas(16) std::int8_t keys[section_positions * row_bytes];
    alignas(16) std::int8_t values[section_positions * row_bytes];
    float scales[section_blocks][2][block_slots];
  } packed;

  template <int Threads>
  __device__ void start(const kv_layer& cache, const tile_span&, int kv_head, int, const block_ids& ids) {
#pragma unroll
    for (int b = 0; b < section_blocks; ++b) {
      const head_block<std::int8_t> block(cache, ids.of[b], kv_head);
      for_threads<block_slots * Steps, Threads>([&](unsigned i) {
        const unsigned slot = i / Steps, dim = i % Steps * 16, at = b * block_slots * row_bytes + i * 16;
        copy_async_or_clear(&packed.keys[at], &block.key(slot, dim), static_cast<int>(dim) < block.padded_dim);
        copy_async_or_clear(&packed.values[at], &block.value(slot, dim), static_cast<int>(dim) < block.padded_dim);
      });
      const int four = static_cast<int>(threadIdx.x) * 4;
      if (four < 2 * block_slots) copy_async(&packed.scales[b][0][0] + four, &block.key_scale(four));
    }
    close_copies();
  }
  /// Positions that nobody sees may hold anything: of the values zeros are made there.
  template <int Threads>
  __device__ void ready(const tile_span& span, int section) {
    constexpr int row_pieces = position_rows<Steps>::row_pieces;
    for_threads<section_positions * row_pieces, Threads>([&](unsigned i) {
      const unsigned row = i / row_pieces, place = i % row_pieces;
      const uint2 keys = reinterpret_cast<const uint2*>(packed.keys)[i];
      const uint2 low = f16_of_int8(keys.x), high = f16_of_int8(keys.y);
      *unpacked.keys.piece(row, place) = make_uint4(low.x, low.y, high.x, high.y);
      const uint2 values = reinterpret_cast<const uint2*>(packed.values)[i];
      const bool is_seen = span.sees(section * section_positions + row);
      const float scale = is_seen ? packed.scales[row / block_slots][1][row % block_slots] : 0.0f;
      *unpacked.values.piece(row, place) = make_uint4(scaled<0>(values.x, scale), scaled<2>(values.x, scale),
                                                      scaled<0>(values.y, scale), scaled<2>(values.y, scale));
    });
    for_threads<section_positions, Threads>(
        [&](unsigned i) { key_scales[i] = packed.scales[i / block_slots][0][i % block_slots]; });
    __syncthreads();
  }
  __device__ const section_rows<Steps>& rows(int) const {
    return unpacked;
  }
  __device__ float key_scale(int i) const {
    return key_scales[i];
  }

 private:
  template <int First>
  static __device__ std::uint32_t scaled(std::uint32_t four, float scale) {
    const auto number = [&](int i) { return static_cast<float>(static_cast<std::int8_t>(four >> (8 * i))); };
    return pack_f16(number(First) * scale, number(First + 1) * scale);
  }
};

/// A warp's 16 queries as its lanes multiply them: in f16, and so that products are scores, powers of two.
template <int Steps>
struct query_fragments {
  std::uint32_t words[Steps][4];

  __device__ query_fragments(const attention_plan& p, const query (&queries)[2]) {
    // Heads whose dimensions are even begin at even places, where two are read at once.
    if (p.args.cache.head_dim % 2 == 0)
      load(p, queries, [](const float* at, bool) { return *reinterpret_cast<const float2*>(at); });
    else
      load(p, queries, [](const float* at, bool is_pair) { return make_float2(at[0], is_pair ? at[1] : 0.0f); });
  }

 private:
  /// Something is read in any case, so that all reads are under way before one is waited for.
  template <class Read>
  __device__ void load(const attention_plan& p, const query (&queries)[2], Read read) {
    const float* heads[2];
    for (int half = 0; half < 2; ++half)
      heads[half] = queries[half].exists() ? queries[half].at(p, p.args.q) : p.args.q.data;
    const int dims = p.args.cache.head_dim, first = threadIdx.x % 4 * 2;
    float2 pairs[Steps][4];
#pragma unroll
    for (int step = 0; step < Steps; ++step)
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int dim = step * 16 + i / 2 * 8 + first;
        pairs[step][i] = read(heads[i % 2] + (dim < dims ? dim : 0), dim + 1 < dims);
      }
#pragma unroll
    for (int step = 0; step < Steps; ++step)
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const std::uint32_t two = pack_f16(pairs[step][i].x * p.score_factor, pairs[step][i].y * p.score_factor);
        const bool is_there = queries[i % 2].exists() && step * 16 + i / 2 * 8 + first < dims;
        words[step][i] = is_there ? two : 0;
      }
  }
};

/// A lane's part of a section: of every eight positions its neighbours 2t and 2t + 1; [i] is query i / 2 of the lane's
/// two and neighbour i % 2.
using section_scores = float[section_eights][4];

/// A block's keys of a step, as tensor cores multiply them: of its first eight positions, then of the others.
template <int Steps>
__device__ void load_keys(const position_rows<Steps>& keys, int step, unsigned block, std::uint32_t (&first)[2],
                          std::uint32_t (&second)[2]) {
  const unsigned lane = threadIdx.x % 32;
  std::uint32_t k[4];
  load_matrices(k, keys.piece(block * block_slots + lane / 16 * 8 + lane % 8, 2 * step + lane / 8 % 2));
  first[0] = k[0], first[1] = k[1], second[0] = k[2], second[1] = k[3];
}

/// What the queries do not see counts for nothing. The scores are those of neighbouring eights from first_eight on.
/// Before that `change` makes of each what it should be.
template <kv_kind Kind, int Eights, class Memory, class Change>
__device__ void finish_scores(const Memory& memory, const position_range (&seen)[2], int section, int first_eight,
                              float (&scores)[Eights][4], Change change) {
  const int first_place = first_eight * 8 + static_cast<int>(threadIdx.x) % 4 * 2;
  const int first = section * section_positions;
  if constexpr (Kind == kv_kind::i8)
#pragma unroll
    for (int e = 0; e < Eights; ++e)
      for (int i = 0; i < 4; ++i) scores[e][i] *= memory.key_scale(first_place + e * 8 + i % 2);
#pragma unroll
  for (auto& eight : scores)
    for (float& score : eight) score = change(score);
  if (seen[0].sees_all(first, section_positions) && seen[1].sees_all(first, section_positions)) return;
#pragma unroll
  for (int e = 0; e < Eights; ++e)
    for (int i = 0; i < 4; ++i)
      if (!seen[i / 2].sees(first + first_place + e * 8 + i % 2)) scores[e][i] = minus_infinity;
}

template <kv_kind Kind, int Eights, class Memory>
__device__ void finish_scores(const Memory& memory, const position_range (&seen)[2], int section, int first_eight,
                              float (&scores)[Eights][4]) {
  finish_scores<Kind>(memory, seen, section, first_eight, scores, [](float score) { return score; });
}

/// Of one of the lane's two queries.
template <int Eights>
__device__ float largest_score(const float (&scores)[Eights][4], int half) {
  float largest = minus_infinity;
#pragma unroll
  for (int e = 0; e < Eights; ++e) largest = fmaxf(largest, fmaxf(scores[e][half * 2], scores[e][half * 2 + 1]));
  for (unsigned step = 1; step < 4; step *= 2) largest = fmaxf(largest, __shfl_xor_sync(whole_warp, largest, step));
  return largest;
}

/// The softmax of a section: weights as tensor cores multiply them, and what they are parts of for the lane's two
/// queries.
struct section_weights {
  std::uint32_t words[section_blocks][4];
  softmax_part parts[2];

  __device__ void make(const section_scores& scores) {
    weigh(scores);
    add_up();
  }
  __device__ void weigh(const section_scores& scores) {
#pragma unroll
    for (int half = 0; half < 2; ++half) parts[half].largest = largest_score(scores, half);
#pragma unroll
    for (int b = 0; b < section_blocks; ++b) weigh_block(b, scores[b * 2], scores[b * 2 + 1]);
  }
  /// When the largest scores of the section are known.
  __device__ void weigh_block(int block, const float (&first)[4], const float (&second)[4]) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const float largest = parts[half].largest, base = largest == minus_infinity ? 0.0f : largest;
      words[block][half] = pack_f16(quick_exp2(first[half * 2] - base), quick_exp2(first[half * 2 + 1] - base));
      words[block][half + 2] = pack_f16(quick_exp2(second[half * 2] - base), quick_exp2(second[half * 2 + 1] - base));
    }
  }
  /// The sum of the weights as they were rounded: what values that are all one would give.
  __device__ void add_up() {
    constexpr std::uint32_t ones = 0x3c003c00u;
    float sums[4] = {};
#pragma unroll
    for (int b = 0; b < section_blocks; ++b) mma_f16(sums, words[b], {ones, ones});
    parts[0].sum = sums[0];
    parts[1].sum = sums[2];
  }
};

/// use(group, i, sums) for Eights times eight dimensions from first_eight on: the section's values, weighed for each
/// group of 16 queries, as the lane has them of dimension 2t and 2t + 1; [i] is query i / 2 of the lane's two. Some
/// sums are made at a time, since each waits for its last product.
template <int Eights, int Groups, int Steps, class Use>
__device__ void weigh_values(const position_rows<Steps>& values, const section_weights (&weights)[Groups],
                             int first_eight, Use use) {
  constexpr int at_once = Eights < 4 / Groups ? Eights : 4 / Groups;
  const unsigned lane = threadIdx.x % 32;
#pragma unroll
  for (int first = 0; first < Eights; first += at_once) {
    float sums[Groups][at_once][4] = {};
#pragma unroll
    for (int b = 0; b < section_blocks; ++b)
#pragma unroll
      for (int e = 0; e < at_once; e += 2) {
        std::uint32_t v[4];
        load_transposed(v, values.piece(b * block_slots + lane % 16, first_eight + first + e + lane / 16));
#pragma unroll
        for (int g = 0; g < Groups; ++g) {
          mma_f16(sums[g][e], weights[g].words[b], {v[0], v[1]});
          mma_f16(sums[g][e + 1], weights[g].words[b], {v[2], v[3]});
        }
      }
#pragma unroll
    for (int g = 0; g < Groups; ++g)
#pragma unroll
      for (int e = 0; e < at_once; ++e) use(g, first + e, sums[g][e]);
  }
}

/// What a lane has of Eights times eight dimensions, over all sections so far.
template <int Eights>
struct lane_totals {
  float values[Eights][4] = {};
  softmax_part parts[2];

  __device__ void put_answers(const attention_plan& p, const query (&queries)[2], int first_eight) const {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      if (!queries[half].exists()) continue;
      float* out = queries[half].at(p, p.args.out);
      const final_sum answer(parts[half]);
#pragma unroll
      for (int e = 0; e < Eights; ++e)
        put_two(out, p.args.cache.head_dim, (first_eight + e) * 8 + static_cast<int>(threadIdx.x) % 4 * 2,
                answer(values[e][half * 2]), answer(values[e][half * 2 + 1]));
    }
  }
};

/// How a lane's totals and a section are weighted in what they are together.
struct joint_weights {
  float before[2], after[2];

  __device__ void join(softmax_part (&parts)[2], const softmax_part (&section)[2]) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const part_weights joint(parts[half], section[half]);
      parts[half] = joint.both;
      before[half] = joint.before;
      after[half] = joint.after;
    }
  }
  __device__ void join(float (&totals)[4], const float (&sums)[4]) const {
#pragma unroll
    for (int i = 0; i < 4; ++i) totals[i] = part_weights::join(totals[i], before[i / 2], sums[i], after[i / 2]);
  }
};

template <int Eights, int Groups, int Steps>
__device__ void join_section(lane_totals<Eights> (&totals)[Groups], const position_rows<Steps>& values,
                             const section_weights (&weights)[Groups], int first_eight) {
  joint_weights joint[Groups];
#pragma unroll
  for (int g = 0; g < Groups; ++g) joint[g].join(totals[g].parts, weights[g].parts);
  weigh_values<Eights>(values, weights, first_eight,
                       [&](int g, int e, const float(&sums)[4]) { joint[g].join(totals[g].values[e], sums); });
}

}  // namespace troupe::cuda
