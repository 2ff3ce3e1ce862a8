// From the heads of a row to what attention reads: a warp for a head, or for some where there are very many.
#include "model/ops/cuda/cache.hpp"
#include "model/ops/cuda/heads.hpp"

namespace troupe::cuda {
namespace {

__device__ void store(float& to, float value) {
  to = value;
}
__device__ void store(std::uint16_t& to, float value) {
  to = f16_bits(value);
}

/// Keys are read in whole sixteens of dimensions, so what is behind the head's are zeros.
template <class Element, class Head>
__device__ void store_head(const Head& v, head_block<Element> block, int slot, bool is_key) {
  if constexpr (sizeof(Element) == 1) {
    const float most = v.largest(), inverse = most > 0 ? 127.0f / most : 0.0f;
    v.each([&](int d, float x) {
      (is_key ? block.key(slot, d) : block.value(slot, d)) = static_cast<Element>(__float2int_rn(x * inverse));
    });
    if (threadIdx.x % 32 == 0) (is_key ? block.key_scale(slot) : block.value_scale(slot)) = most / 127.0f;
  } else {
    v.each([&](int d, float x) { store(is_key ? block.key(slot, d) : block.value(slot, d), x); });
  }
  const int behind = v.dim + threadIdx.x % 32;
  if (is_key && behind < block.padded_dim) block.key(slot, behind) = 0;
}

/// A head of a row's queries, keys and values.
struct placed_head {
  float* at;
  int head;  ///< of its kind
  bool is_query, is_key;

  __device__ placed_head(const place_args& a, int row, int number) : is_query(number < a.heads) {
    const int others = number - a.heads;
    is_key = !is_query && others < a.cache.heads;
    head = is_query ? number : is_key ? others : others - a.cache.heads;
    const float_rows& rows = is_query ? a.q : is_key ? a.k : a.v;
    at = rows.row(row) + head * a.cache.head_dim;
  }
};

template <class Element, int Pairs, bool InPart>
__device__ void place_head(const place_args& a, const placed_head& own, held_head<Pairs, InPart>& v,
                           const lane_angles<Pairs>& angles, std::int32_t block, int slot) {
  const float* norm = own.is_query ? a.q_norm : own.is_key ? a.k_norm : nullptr;
  if (norm) v.normalize(norm, a.norm_eps);
  if (own.is_query || own.is_key) v.rotate(angles);
  if (own.is_query) return v.each([&](int d, float x) { own.at[d] = x; });
  store_head(v, head_block<Element>(a.cache, block, own.head), slot, own.is_key);
}

/// A warp's heads are read at the same time, and turned by the same angles.
template <class Element, int Pairs, int Heads, bool InPart>
__global__ void __launch_bounds__(head_warps * 32) place_rows(place_args a) {
  const int row = blockIdx.x, dim = a.cache.head_dim, all = a.heads + 2 * a.cache.heads;
  const int first = (blockIdx.y * head_warps + threadIdx.x / 32) * Heads;
  const std::int32_t position = a.places.positions[row];  // places and angles are there before the pass begins
  if (position < 0 || first >= all) return await_last_kernel();
  const lane_angles<Pairs> angles(a.angles, position);
  const int slot = position % static_cast<int>(block_tokens);
  const std::int32_t* table = a.places.tables + a.places.sequences[row] * a.places.table_stride;
  const std::int32_t block = table[position / block_tokens];
  await_last_kernel();
  held_head<Pairs, InPart> heads[Heads];
#pragma unroll
  for (int h = 0; h < Heads; ++h)
    if (first + h < all) heads[h] = held_head<Pairs, InPart>(placed_head(a, row, first + h).at, dim, a.angles.pairs);
#pragma unroll
  for (int h = 0; h < Heads; ++h)
    if (first + h < all) place_head<Element>(a, placed_head(a, row, first + h), heads[h], angles, block, slot);
}

constexpr int many_heads_rows = 256;  // that keep a device busy even where a warp has several heads
constexpr int many_heads = 4;

template <class Element, int Pairs, bool InPart>
void place(const stream& on, const place_args& args) {
  const auto start = [&](auto kernel, int of_warp) {
    const dim3 grid(static_cast<unsigned>(args.rows),
                    grid_for(args.heads + 2 * args.cache.heads, head_warps * of_warp));
    launch_early("place_heads", kernel, grid, head_warps * 32, on, args);
  };
  if (args.rows < many_heads_rows)
    start(place_rows<Element, Pairs, 1, InPart>, 1);
  else
    start(place_rows<Element, Pairs, many_heads, InPart>, many_heads);
}

template <class Element, int Pairs>
void place(const stream& on, const place_args& args) {
  const bool in_part = args.angles.pairs > 0 && 2 * args.angles.pairs < args.cache.head_dim;
  (in_part ? place<Element, Pairs, true> : place<Element, Pairs, false>)(on, args);
}

template <class Element>
void place(const stream& on, const place_args& args) {
  if (args.cache.head_dim <= most_head_dim / 2)
    place<Element, lane_pairs / 2>(on, args);
  else
    place<Element, lane_pairs>(on, args);
}

}  // namespace

void place_heads(const stream& on, const place_args& args) {
  switch (args.cache.kind) {
    case kv_kind::f32:
      return place<float>(on, args);
    case kv_kind::f16:
      return place<std::uint16_t>(on, args);
    case kv_kind::i8:
      return place<std::int8_t>(on, args);
  }
}

}  // namespace troupe::cuda
