// Wide tiles of attention on Hopper, where sections lie in f16. One warpgroup of a block brings them into shared
// memory, some sections ahead; two others have 64 of a tile's queries each. While the tensor cores weigh a section's
// values, those threads make the next one's scores into weights. The bits are those of all kernels of attention: the
// sums of mma_f16 are made in the same order, and the rest by the same functions (attention_sections.hpp).
#include <algorithm>

#include "model/ops/cuda/attention_sections.hpp"
#include "model/ops/cuda/wide_tiles.hpp"

namespace troupe::cuda {
namespace {

constexpr int copying_threads = 128;  // the first of a block
constexpr int group_queries = 64, attending_groups = wide_tile_queries / group_queries;
constexpr int attending_warps = attending_groups * 4;
constexpr int block_threads = copying_threads + attending_warps * 32;
constexpr int held_sections = 6;  // by shared memory, at most

constexpr int steps_of_tile = 4, tile_row_pieces = swizzled_row_bytes / 16;

/// Keys and values of a section: tiles of 64 dimensions, a position a row.
template <int Steps>
struct alignas(1024) swizzled_section {
  using tile = uint4[section_positions * tile_row_pieces];
  tile keys[Steps / steps_of_tile], values[Steps / steps_of_tile];
};

template <int Steps>
struct attention_memory {
  swizzled_section<Steps> sections[held_sections];
  gate full[held_sections], free[held_sections];
};
using section_turn = wide_turn<held_sections>;

/// f(tile, kv head) for all that this block has. Of a sequence the longest tiles come first, and blocks take turns in
/// being the first to choose, so that all have about as much to do.
template <class F>
__device__ void for_tiles(const attention_plan& p, int blocks, F f) {
  const int heads = p.args.cache.heads, count = p.args.tile_count * heads;
  for (int first = 0, place = blockIdx.x; first + place < count; first += blocks, place = blocks - 1 - place) {
    const int item = first + place;
    f(p.args.tiles[p.args.tile_count - 1 - item / heads], item % heads);
  }
}

/// What the copying threads do.
template <int Steps>
class section_copies {
 public:
  __device__ section_copies(attention_memory<Steps>& memory, const attention_plan& p) : memory_(memory), p_(p) {}

  __device__ void bring(const attention_tile& tile, int kv_head) {
    const tile_span span(p_, tile, kv_head, 0, wide_tile_queries);
    const int last = span.last_section();
    block_ids ids;
    if (span.first_section() < last) ids.read(span, span.first_section());
#pragma unroll 1
    for (int section = span.first_section(); section < last; ++section, turn_.next()) {
      memory_.free[turn_.buffer].wait(!turn_.odd);
      start(span, kv_head, section, ids);
      ids.read(span, section + 1);
      if (coming_ == most_coming) show_one();
      ++coming_;
    }
  }
  __device__ void finish() {
    for (; coming_ > 0; --coming_) {
      wait_for_copies<0>();
      tell();
    }
  }

 private:
  /// What nobody sees is zeros, since tensor cores multiply it as well.
  __device__ void start(const tile_span& span, int kv_head, int section, const block_ids& ids) {
    constexpr int row_pieces = 2 * Steps, rows_at_once = copying_threads / row_pieces;
    static_assert(rows_at_once % 8 == 0, "a thread's rows are all swizzled alike");
    const int thread = static_cast<int>(threadIdx.x), slot = thread / row_pieces, place = thread % row_pieces;
    swizzled_section<Steps>& to = memory_.sections[turn_.buffer];
    const int tile = place / tile_row_pieces, at = swizzled_piece(slot, place % tile_row_pieces);
    uint4 *const keys = &to.keys[tile][at], *const values = &to.values[tile][at];
#pragma unroll
    for (int b = 0; b < section_blocks; ++b) {
      const head_block<std::uint16_t> block(p_.args.cache, ids.of[b], kv_head);
#pragma unroll
      for (int row = 0; row < block_slots; row += rows_at_once) {
        const int offset = (b * block_slots + row) * tile_row_pieces;
        const bool is_there =
            place * 8 < block.padded_dim && span.sees(section * section_positions + b * block_slots + row + slot);
        copy_async_or_clear(keys + offset, &block.key(row + slot, place * 8), is_there);
        copy_async_or_clear(values + offset, &block.value(row + slot, place * 8), is_there);
      }
    }
    close_copies();
  }
  /// The oldest section that is still coming.
  __device__ void show_one() {
    wait_for_copies<most_coming>();
    tell();
    --coming_;
  }
  __device__ void tell() {
    show_to_tensor_cores();
    __syncwarp();
    if (threadIdx.x % 32 == 0) memory_.full[told_.buffer].arrive();
    told_.next();
  }

  static constexpr int most_coming = 3;  // sections: the others can be multiplied
  // Who multiplies asks for the second section ahead before it leaves one, and that is shown when most_coming further
  // ones have a place.
  static_assert(held_sections >= most_coming + 3);

  attention_memory<Steps>& memory_;
  const attention_plan& p_;
  section_turn turn_, told_;
  int coming_ = 0;
};

/// What a warp of a warpgroup does that has queries.
template <int Steps>
class attending_warp {
 public:
  __device__ attending_warp(attention_memory<Steps>& memory, const attention_plan& p) : memory_(memory), p_(p) {}

  __device__ void attend(const attention_tile& tile, int kv_head) {
    const int thread = static_cast<int>(threadIdx.x) - copying_threads;
    const int first_query = thread / 32 * tile_queries;
    const tile_span span(p_, tile, kv_head, 0, wide_tile_queries);
    const tile_span own(p_, tile, kv_head, thread / 128 * group_queries, group_queries);
    const int first = span.first_section(), last = span.last_section();
    const int begin = min(max(own.first_section(), first), last), end = max(min(own.last_section(), last), begin);
    pass(begin - first);
    if (begin < end) {
      lane_totals<2 * Steps> totals;
      sum_up(query_two(p_, tile, kv_head, first_query), begin, end, totals);
      totals.put_answers(p_, query_two(p_, tile, kv_head, first_query).of, 0);
    }
    pass(last - end);
  }

 private:
  using lane_sums = float[2 * Steps][4];

  __device__ void sum_up(const query_two& queries, int begin, int end, lane_totals<2 * Steps>& totals) {
    const position_range seen[2] = {queries.of[0].counted(), queries.of[1].counted()};
    const query_fragments<Steps> fragments(p_, queries.of);
    section_scores scores;
    lane_sums sums;
    section_weights weights;
    int now = take(), next = now;
    open_products();
    score(fragments, now, scores);
    close_products();
    if (begin + 1 < end) next = take();
    wait_for_products<0>();
    weigh(seen, begin, scores, weights);
#pragma unroll 1
    for (int section = begin + 1; section < end; ++section) {
      open_products();
      score(fragments, next, scores);
      close_products();
      weigh_values(weights, now, sums);
      close_products();
      wait_for_products<1>();
      section_weights next_weights;
      weigh(seen, section, scores, next_weights);
      const int left = now;
      now = next;
      if (section + 1 < end) next = take();  // the compiler would have the values waited for before the weights
      end_section(weights, left, sums, totals);
      weights = next_weights;
    }
    open_products();
    weigh_values(weights, now, sums);
    close_products();
    end_section(weights, now, sums, totals);
  }

  __device__ void score(const query_fragments<Steps>& queries, int buffer, section_scores& scores) {
    const swizzled_section<Steps>& section = memory_.sections[buffer];
#pragma unroll
    for (int step = 0; step < Steps; ++step)
      multiply_f16_step(scores, queries.words[step], section.keys[step / steps_of_tile], step % steps_of_tile,
                        step > 0);
  }
  __device__ void weigh(const position_range (&seen)[2], int section, section_scores& scores,
                        section_weights& weights) {
#pragma unroll
    for (auto& eight : scores)
      for (float& score : eight) receive(score);
    finish_scores<kv_kind::f16>(memory_, seen, section, 0, scores);
    weights.weigh(scores);
#pragma unroll
    for (auto& block : weights.words)
      for (std::uint32_t& word : block) settle(word);
  }
  __device__ void weigh_values(const section_weights& weights, int buffer, lane_sums& sums) {
    const swizzled_section<Steps>& section = memory_.sections[buffer];
#pragma unroll
    for (int b = 0; b < section_blocks; ++b)
      multiply_f16_columns(sums, weights.words[b], section.values, b, sizeof(section.values[0]), b > 0);
  }
  __device__ void end_section(section_weights& weights, int buffer, lane_sums& sums, lane_totals<2 * Steps>& totals) {
    wait_for_products<0>();
    leave(buffer);
    weights.add_up();
    joint_weights joint;
    joint.join(totals.parts, weights.parts);
#pragma unroll
    for (int e = 0; e < 2 * Steps; ++e) {
      for (float& sum : sums[e]) receive(sum);
      joint.join(totals.values[e], sums[e]);
    }
  }

  /// Waits for the next section. Returns its buffer.
  __device__ int take() {
    const int buffer = turn_.buffer;
    memory_.full[buffer].wait(turn_.odd);
    turn_.next();
    return buffer;
  }
  __device__ void leave(int buffer) {
    if (threadIdx.x % 32 == 0) memory_.free[buffer].arrive();
  }
  /// Sections that none of the warpgroup's queries sees.
  __device__ void pass(int sections) {
#pragma unroll 1
    for (int i = 0; i < sections; ++i) {
      const int buffer = take();
      __syncwarp();  // a lane that came late would miss that the gate was open
      leave(buffer);
    }
  }

  attention_memory<Steps>& memory_;
  const attention_plan& p_;
  section_turn turn_;
};

template <int Steps>
__global__ void __launch_bounds__(block_threads, 1)
    attend_wide_sections(const __grid_constant__ attention_plan p, int blocks) {
#if !defined(__CUDA_ARCH__) || defined(__CUDA_ARCH_FEAT_SM90_ALL)
  auto& memory = *reinterpret_cast<attention_memory<Steps>*>(dynamic_shared());
  if (threadIdx.x < held_sections) {
    memory.full[threadIdx.x].set(copying_threads / 32);
    memory.free[threadIdx.x].set(attending_warps);
    show_gates();
  }
  __syncthreads();
  await_last_kernel();
  if (whole_warp_number() < copying_threads / 32) {
    give_registers<24>();
    section_copies<Steps> copies(memory, p);
    for_tiles(p, blocks, [&](const attention_tile& tile, int kv_head) { copies.bring(tile, kv_head); });
    copies.finish();
  } else {
    take_registers<240>();
    attending_warp<Steps> warp(memory, p);
    for_tiles(p, blocks, [&](const attention_tile& tile, int kv_head) { warp.attend(tile, kv_head); });
  }
#else
  __trap();
#endif
}

template <int Steps>
void start(const stream& on, const attention_plan& plan) {
  const int blocks = std::min(plan.args.tile_count * plan.args.cache.heads, multiprocessors());
  const dim3 grid(static_cast<unsigned>(blocks));
  launch("attention", attend_wide_sections<Steps>, {grid, block_threads, sizeof(attention_memory<Steps>), true}, on,
         plan, blocks);
}

}  // namespace

void attend_wide_on_hopper(const stream& on, const attention_plan& plan) {
  (plan.args.cache.head_dim <= 64 ? start<4> : start<8>)(on, plan);
}

}  // namespace troupe::cuda
