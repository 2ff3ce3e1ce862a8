// Who goes where in a mixture of experts, and what belongs to products around them: a warp chooses for a row, one block
// of threads lays out all visits.
#include "model/ops/cuda/experts.hpp"

#include <algorithm>

#include "model/ops/cuda/kernel.hpp"

namespace troupe::cuda {
namespace {

constexpr int mark_rows = 32;                  // a bit for each of them
constexpr int visit_threads = mark_rows * 32;  // a warp for each
constexpr std::int32_t nowhere = -1;
static_assert(most_experts <= visit_threads);

// ---- which experts ----

struct scored_expert {
  float score;
  int expert;
};
__device__ bool comes_before(const scored_expert& a, const scored_expert& b) {
  return a.score > b.score || (a.score == b.score && a.expert < b.expert);
}
__device__ scored_expert first_of_warp(scored_expert mine) {
  for (unsigned step = 16; step > 0; step /= 2) {
    const scored_expert other{__shfl_xor_sync(whole_warp, mine.score, step),
                              __shfl_xor_sync(whole_warp, mine.expert, step)};
    if (comes_before(other, mine)) mine = other;
  }
  return mine;
}

/// A row's scores in the registers of a warp: lane l has those of experts l, l + 32 … What is no number is the
/// smallest.
template <int Parts>
class row_scores {
 public:
  __device__ row_scores(const float* scores, int experts) : experts_(experts) {
#pragma unroll
    for (int i = 0; i < Parts; ++i) {
      score_[i] = expert(i) < experts ? scores[expert(i)] : minus_infinity;
      if (!(score_[i] > minus_infinity)) score_[i] = minus_infinity;
    }
  }

  __device__ void take(int count) {
    for (int i = 0; i < count; ++i) {
      const scored_expert next = first_of_warp(first_left());
      if (i == 0) most_ = next.score;
      if (next.expert % 32 == static_cast<int>(threadIdx.x % 32)) taken_ |= 1u << next.expert / 32;
    }
  }
  /// What all weigh together, or those that were taken.
  __device__ float total(bool of_taken) const {
    float sum = 0;
#pragma unroll
    for (int i = 0; i < Parts; ++i)
      if (expert(i) < experts_ && (is_taken(i) || !of_taken)) sum += weight(i);
    return warp_sum(sum);
  }
  /// f(number, expert, weight) for those that were taken, by some lane each, numbered in the order of experts.
  template <class F>
  __device__ void for_taken(F f) const {
    const unsigned lanes_before = (1u << threadIdx.x % 32) - 1;
    int before = 0;
#pragma unroll
    for (int i = 0; i < Parts; ++i) {
      const unsigned all = __ballot_sync(whole_warp, is_taken(i));
      if (is_taken(i)) f(before + __popc(all & lanes_before), expert(i), weight(i));
      before += __popc(all);
    }
  }

 private:
  __device__ int expert(int part) const {
    return part * 32 + static_cast<int>(threadIdx.x % 32);
  }
  __device__ bool is_taken(int part) const {
    return taken_ >> part & 1;
  }
  __device__ float weight(int part) const {
    constexpr float log2_e = 1.4426950408889634f;
    return quick_exp2((score_[part] - most_) * log2_e);
  }
  __device__ scored_expert first_left() const {
    scored_expert first{minus_infinity, visit_threads};  // comes after every expert
#pragma unroll
    for (int i = 0; i < Parts; ++i) {
      const scored_expert each{score_[i], expert(i)};
      if (expert(i) < experts_ && !is_taken(i) && comes_before(each, first)) first = each;
    }
    return first;
  }

  int experts_;
  float score_[Parts], most_ = 0;
  unsigned taken_ = 0;
};

// ---- where visits lie ----

/// The sum of a warp's values up to the own one.
__device__ int sum_up_to(int value) {
  const int lane = threadIdx.x % 32;
  for (int step = 1; step < 32; step *= 2) {
    const int other = __shfl_sync(whole_warp, value, static_cast<unsigned>(max(lane - step, 0)));
    if (lane >= step) value += other;
  }
  return value;
}
/// Of the block's first threads, so many: the sum of all values before the own one.
__device__ int sum_before(int value, int threads) {
  __shared__ int of_warp[visit_threads / 32];
  const auto thread = static_cast<int>(threadIdx.x);
  const int up_to = sum_up_to(value);
  if (thread % 32 == 31) of_warp[thread / 32] = up_to;
  __syncthreads();
  int before = up_to - value;
  if (thread < threads)
    for (int warp = 0; warp < thread / 32; ++warp) before += of_warp[warp];
  return before;
}

/// A warp's: how many visits an expert has in all, and before each 32 rows.
__device__ int count_visits(const visit_tables& v, int expert) {
  const int lane = threadIdx.x % 32, words = v.marked_rows();
  const std::uint32_t* marks = v.marks + expert * words;
  int count = 0;
  for (int first = 0; first < words; first += 32) {
    const int word = first + lane;
    const int mine = word < words ? __popc(marks[word]) : 0, up_to = sum_up_to(mine);
    if (word < words) v.before[expert * words + word] = count + up_to - mine;
    count += __shfl_sync(whole_warp, up_to, 31);
  }
  return count;
}

/// Of one expert, by one thread.
__device__ void write_tiles(const visit_tables& v, int expert, int first_tile, int visits) {
  const int rows = v.bounds.tile_rows;
  for (int done = 0, tile = first_tile; done < visits; done += rows, ++tile)
    v.tiles[tile] = {expert, min(rows, visits - done)};
}

/// Of a visit, whose expert begins at first_place.
__device__ int place_of(const visit_tables& v, int row, int expert, int first_place) {
  const int word = expert * v.marked_rows() + row / mark_rows;
  const unsigned rows_before = (1u << row % mark_rows) - 1;
  return first_place + v.before[word] + __popc(v.marks[word] & rows_before);
}

/// Some visits at a time: what they read is under way at once.
__device__ void write_places(const visit_tables& v, const int (&first_place_of)[most_experts]) {
  constexpr int at_once = 4;
  const visit_bounds& b = v.bounds;
  for (int first = threadIdx.x; first < b.visits(); first += at_once * visit_threads) {
    int expert[at_once], place[at_once];
#pragma unroll
    for (int i = 0; i < at_once; ++i) {
      const int visit = first + i * visit_threads;
      expert[i] = visit < b.visits() ? v.experts[visit] : nowhere;
    }
#pragma unroll
    for (int i = 0; i < at_once; ++i)
      if (expert[i] != nowhere)
        place[i] = place_of(v, (first + i * visit_threads) / b.taken, expert[i], first_place_of[expert[i]]);
#pragma unroll
    for (int i = 0; i < at_once; ++i) {
      const int visit = first + i * visit_threads;
      if (visit >= b.visits()) break;
      v.places[visit] = expert[i] == nowhere ? nowhere : place[i];
      if (expert[i] != nowhere) v.row_at[place[i]] = visit / b.taken;
    }
  }
}

/// By one block of threads, when all marks can be read.
__device__ void lay_out(const visit_tables& v) {
  __shared__ int visits_of[most_experts], first_place_of[most_experts];
  const visit_bounds& b = v.bounds;
  const auto thread = static_cast<int>(threadIdx.x);
  for (int expert = thread / 32; expert < b.experts; expert += visit_threads / 32) {
    const int visits = count_visits(v, expert);
    if (thread % 32 == 0) visits_of[expert] = visits;
  }
  for (int tile = thread; tile < b.tiles(); tile += visit_threads) v.tiles[tile] = {0, 0};
  for (int place = thread; place < b.places(); place += visit_threads) v.row_at[place] = nowhere;
  __syncthreads();
  const int visits = thread < b.experts ? visits_of[thread] : 0;
  const int first_tile = sum_before((visits + b.tile_rows - 1) / b.tile_rows, b.experts);
  if (thread < b.experts) {
    first_place_of[thread] = first_tile * b.tile_rows;
    write_tiles(v, thread, first_tile, visits);
  }
  __syncthreads();
  write_places(v, first_place_of);
}

__global__ void __launch_bounds__(visit_threads) place_visits(visit_tables v) {
  await_last_kernel();
  lay_out(v);
}

/// A block of threads has 32 rows. If these are all, it also lays out their visits.
template <int Parts>
__global__ void __launch_bounds__(visit_threads) choose_for_rows(choose_args a) {
  __shared__ std::uint32_t marks[most_experts];
  const visit_tables& v = a.visits;
  const visit_bounds& b = v.bounds;
  const int in_block = threadIdx.x / 32, row = blockIdx.x * mark_rows + in_block;
  marks[threadIdx.x] = 0;
  __syncthreads();
  await_last_kernel();
  if (row < b.rows && a.positions[row] >= 0) {
    row_scores<Parts> scores(a.scores.row(row), b.experts);
    scores.take(b.taken);
    const float total = scores.total(a.whole_shares);
    scores.for_taken([&](int number, int expert, float weight) {
      v.experts[row * b.taken + number] = expert;
      v.shares[row * b.taken + number] = weight / total;
      atomicOr(&marks[expert], 1u << in_block);
    });
  } else if (row < b.rows) {
    for (int i = threadIdx.x % 32; i < b.taken; i += 32) v.experts[row * b.taken + i] = nowhere;
  }
  __syncthreads();
  if (static_cast<int>(threadIdx.x) < b.experts)
    v.marks[threadIdx.x * v.marked_rows() + blockIdx.x] = marks[threadIdx.x];
  __syncthreads();
  if (b.rows <= mark_rows) lay_out(v);
}

// ---- what comes to places and back ----

constexpr int copy_threads = 128;

template <class T>
__device__ void copy_row(T* to, const T* from, std::int64_t count) {
  static_assert(sizeof(uint4) % sizeof(T) == 0);
  const auto pieces = static_cast<int>(count * static_cast<std::int64_t>(sizeof(T)) / sizeof(uint4));
  for (int i = threadIdx.x; i < pieces; i += copy_threads)
    reinterpret_cast<uint4*>(to)[i] = reinterpret_cast<const uint4*>(from)[i];
}

/// A block of threads for a place. Rows are padded, so they are whole pieces, but for few sums of groups.
__global__ void __launch_bounds__(copy_threads) gather_rows(gather_args a) {
  await_last_kernel();
  const std::int64_t place = blockIdx.x, row = a.visits.row_at[place], padded = padded_row(a.n), groups = padded / 32;
  if (row < 0) return;
  if (a.to.data) copy_row(a.to.row(place), a.x.row(row), padded);
  if (a.to_codes.bf16) copy_row(a.to_codes.bf16 + place * padded, a.codes.bf16 + row * padded, padded);
  if (!a.to_codes.q) return;
  copy_row(a.to_codes.q + place * padded, a.codes.q + row * padded, padded);
  for (int i = threadIdx.x; i < groups; i += copy_threads)
    a.to_codes.group_sums[place * groups + i] = a.codes.group_sums[row * groups + i];
  if (threadIdx.x > 0) return;
  a.to_codes.scales[place] = a.codes.scales[row];
  a.to_codes.sums[place] = a.codes.sums[row];
}

/// Four neighbours of a row for each thread.
__global__ void __launch_bounds__(copy_threads) add_visited(add_visits_args a) {
  await_last_kernel();
  const int row = blockIdx.x, four = blockIdx.y * copy_threads + threadIdx.x, taken = a.visits.bounds.taken;
  if (four * 4 >= a.n || a.visits.places[row * taken] < 0) return;
  auto& hidden = reinterpret_cast<float4*>(a.hidden.row(row))[four];
  float4 sum = hidden;
#pragma unroll 4
  for (int i = 0; i < taken; ++i) {
    const float share = a.visits.shares[row * taken + i];
    const float4 made = reinterpret_cast<const float4*>(a.made.row(a.visits.places[row * taken + i]))[four];
    sum = {sum.x + share * made.x, sum.y + share * made.y, sum.z + share * made.z, sum.w + share * made.w};
  }
  hidden = sum;
}

}  // namespace

// ---- bounds and memory ----

/// Large tiles are multiplied faster, but the last one of each expert is seldom full.
int visit_tile_rows(int rows, int experts, int taken) {
  const int visits_each = rows * taken / experts;
  if (rows <= few_visit_rows || visits_each < 6) return few_visit_rows;
  return visits_each < 12 ? 16 : visits_each < 24 ? 32 : visits_each < 64 ? 64 : most_visit_rows;
}

namespace {

/// Of a pass of any number of rows up to this one.
template <class F>
int most_of(const visit_bounds& most, F f) {
  int result = 0;
  for (visit_bounds b = most; b.rows > 0; --b.rows) {
    b.tile_rows = visit_tile_rows(b.rows, b.experts, b.taken);
    result = std::max(result, f(b));
  }
  return result;
}

std::size_t size_of(std::int64_t n) {
  return static_cast<std::size_t>(n);
}

}  // namespace

int visit_memory::most_places(int most_rows, int experts, int taken) {
  return most_of({most_rows, experts, taken}, [](const visit_bounds& b) { return b.places(); });
}

visit_memory::visit_memory(int most_rows, int experts, int taken)
    : most_{most_rows, experts, taken},
      experts_(size_of(most_.visits())),
      places_(size_of(most_.visits())),
      row_at_(size_of(most_places(most_rows, experts, taken))),
      before_(size_of(std::int64_t{experts} * ceil_div(most_rows, mark_rows))),
      shares_(size_of(most_.visits())),
      tiles_(size_of(most_of(most_, [](const visit_bounds& b) { return b.tiles(); }))),
      marks_(before_.size()) {}

visit_tables visit_memory::tables(int rows) const {
  const visit_bounds bounds{rows, most_.experts, most_.taken, visit_tile_rows(rows, most_.experts, most_.taken)};
  return {bounds,         experts_.data(), places_.data(), shares_.data(),
          row_at_.data(), tiles_.data(),   marks_.data(),  before_.data()};
}

// ---- ops ----

void choose_experts(const stream& on, const choose_args& args) {
  const visit_bounds& b = args.visits.bounds;
  const auto choose = b.experts <= 128 ? choose_for_rows<4> : choose_for_rows<most_experts / 32>;
  launch_early("choose_experts", choose, grid_for(b.rows, mark_rows), visit_threads, on, args);
  if (b.rows > mark_rows) launch_early("place_visits", place_visits, 1, visit_threads, on, args.visits);
}

void gather_visits(const stream& on, const gather_args& args) {
  launch_early("gather_visits", gather_rows, static_cast<unsigned>(args.visits.bounds.places()), copy_threads, on,
               args);
}

void add_visits(const stream& on, const add_visits_args& args) {
  const dim3 grid(static_cast<unsigned>(args.visits.bounds.rows), grid_for(args.n, 4 * copy_threads));
  launch_early("add_visits", add_visited, grid, copy_threads, on, args);
}

}  // namespace troupe::cuda
