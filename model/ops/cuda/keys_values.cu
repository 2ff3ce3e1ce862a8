// From the heads of a row to what attention reads: a warp for a head.
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
template <class Element>
__device__ void store_head(const head_values& v, head_block<Element> block, int slot, bool is_key) {
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

template <class Element>
__global__ void place_rows(place_args a) {
  const int row = blockIdx.x, dim = a.cache.head_dim, position = a.places.positions[row];
  int head = blockIdx.y * head_warps + threadIdx.x / 32;
  if (position < 0 || head >= a.heads + 2 * a.cache.heads) return;
  const bool is_query = head < a.heads, is_key = !is_query && head < a.heads + a.cache.heads;
  if (!is_query) head -= is_key ? a.heads : a.heads + a.cache.heads;
  const float_rows rows = is_query ? a.q : is_key ? a.k : a.v;
  float* at = rows.data + row * rows.stride + head * dim;
  head_values v(at, dim);
  const float* norm = is_query ? a.q_norm : is_key ? a.k_norm : nullptr;
  if (norm) v.normalize(norm, a.norm_eps);
  const std::int64_t angles = static_cast<std::int64_t>(position) * (dim / 2);
  if (a.cosines && (is_query || is_key)) v.rotate(a.cosines + angles, a.sines + angles);
  if (is_query) return v.each([&](int d, float x) { at[d] = x; });
  const std::int32_t* table = a.places.tables + a.places.sequences[row] * a.places.table_stride;
  const int slot = position % static_cast<int>(kv_positions);
  store_head(v, head_block<Element>(a.cache, table[position / kv_positions], head), slot, is_key);
}

}  // namespace

void place_heads(const stream& on, const place_args& args) {
  const dim3 grid(args.rows, ceil_div(args.heads + 2 * args.cache.heads, head_warps));
  const auto place = args.cache.kind == kv_kind::f32   ? place_rows<float>
                     : args.cache.kind == kv_kind::f16 ? place_rows<std::uint16_t>
                                                       : place_rows<std::int8_t>;
  launch("place_heads", place, grid, head_warps * 32, on, args);
}

}  // namespace troupe::cuda
