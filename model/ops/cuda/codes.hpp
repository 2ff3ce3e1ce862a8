// For kernel sources alone: a row in the registers of a block, and what weights want to have of it.
#pragma once
#include "model/ops/cuda/kernel.hpp"
#include "model/ops/cuda/ops.hpp"

namespace troupe::cuda {

// A row is shared out in fours of neighbours: thread t holds those number t, t + threads, t + 2 threads … They are read
// once, as many at the same time as there is room for, and written once.

/// How many fours a thread holds, of how many threads. Both are constants, so that addresses cost no registers.
template <int Fours, int Threads>
struct row_share {
  static constexpr int fours = Fours, threads = Threads;
  static constexpr int least_blocks = 1024 / Threads;  // of a multiprocessor, which limits a thread's registers
};

/// start(share) for rows of n. The width alone decides, since the threads decide the order of sums.
template <class Start>
void for_width(std::int64_t n, Start start) {
  const std::int64_t all = padded_row(n) / 4;
  if (all <= 4 * 64) return start(row_share<4, 64>{});
  if (all <= 4 * 256) return start(row_share<4, 256>{});
  if (all <= 4 * 512) return start(row_share<4, 512>{});
  if (all <= 8 * 448) return start(row_share<8, 448>{});
  if (all <= 8 * 1024) return start(row_share<8, 1024>{});
  static_assert(4 * 16 * 1024 == most_row_values);
  check(n <= most_row_values ? cudaSuccess : cudaErrorInvalidValue, "a row that is too wide");
  start(row_share<16, 1024>{});  // more than the registers hold
}

/// start(share, blocks) for rows of n, of which several blocks have a part each: for what is made element by element.
template <class Start>
void for_parts(std::int64_t n, Start start) {
  constexpr row_share<4, 128> share;
  start(share, grid_for(padded_row(n), 4 * share.fours * share.threads));
}

template <class Share>
struct held_row {
  static constexpr int fours = Share::fours;
  float4 of[fours];

  /// f(number of a four, its place in the row)
  template <class F>
  static __device__ void each(F f) {
    const auto first = static_cast<int>(blockIdx.y * fours * Share::threads + threadIdx.x);
#pragma unroll
    for (int j = 0; j < fours; ++j) f(j, first + j * Share::threads);
  }

  /// What lies behind the row's end is taken for zeros.
  __device__ void load(const float* row, int n) {
    each([&](int j, int place) { of[j] = load_four(row, place, n); });
    end(n);
  }
  /// The last of a row may have something else behind its end.
  static __device__ float4 load_four(const float* row, int place, int n) {
    return place * 4 < n ? reinterpret_cast<const float4*>(row)[place] : float4{};
  }
  __device__ void end(int n) {
    if (n % 4 == 0) return;
    each([&](int j, int place) {
      const int left = n - place * 4;
      if (left < 1) of[j].x = 0;
      if (left < 2) of[j].y = 0;
      if (left < 3) of[j].z = 0;
      if (left < 4) of[j].w = 0;
    });
  }
  __device__ void store(float* row, int n) const {
    const int whole = n / 4;
    each([&](int j, int place) {
      if (place < whole) reinterpret_cast<float4*>(row)[place] = of[j];
    });
    if (n % 4 == 0) return;
    each([&](int j, int place) {
      if (place == whole) store_first(n % 4, of[j], row + place * 4);
    });
  }

  /// Of all elements: four sums a thread, each of which add(sum, element) goes on with, make one.
  template <class Add>
  __device__ float thread_total(Add add) const {
    float4 t = {};
#pragma unroll
    for (int j = 0; j < fours; ++j) t = {add(t.x, of[j].x), add(t.y, of[j].y), add(t.z, of[j].z), add(t.w, of[j].w)};
    return (t.x + t.y) + (t.z + t.w);
  }
  __device__ float thread_largest() const {
    float largest = 0;
#pragma unroll
    for (int j = 0; j < fours; ++j)
      largest = fmaxf(fmaxf(fmaxf(largest, fabsf(of[j].x)), fmaxf(fabsf(of[j].y), fabsf(of[j].z))), fabsf(of[j].w));
    return largest;
  }

 private:
  static __device__ void store_first(int count, const float4& v, float* to) {
    to[0] = v.x;
    if (count > 1) to[1] = v.y;
    if (count > 2) to[2] = v.z;
  }
};

/// f of each of the four's elements, and of others at the same places.
template <class F, class... Others>
__device__ float4 change(F f, const float4& v, const Others&... others) {
  return {f(v.x, others.x...), f(v.y, others.y...), f(v.z, others.z...), f(v.w, others.w...)};
}

// Values of warps meet in memory that has one use in a kernel, so that no thread must wait until it is free.

enum class row_value { sum, squares, largest, total };

template <row_value Use, class T, class Join>
__device__ T join_warps(int warps, T value, Join join) {
  __shared__ row_values<T> shown;
  if (threadIdx.x % 32 == 0) shown.of_warp[threadIdx.x / 32] = value;
  __syncthreads();
  T joined = shown.of_warp[0];
#pragma unroll
  for (int w = 1; w < row_threads / 32; ++w)
    if (w < warps) joined = join(joined, shown.of_warp[w]);
  return joined;
}
template <row_value Use, class Share, class T>
__device__ T block_sum(T value) {
  return join_warps<Use>(Share::threads / 32, warp_sum(value), [](T a, T b) { return a + b; });
}
template <row_value Use, class Share>
__device__ float block_max(float value) {
  return join_warps<Use>(Share::threads / 32, warp_max(value), [](float a, float b) { return fmaxf(a, b); });
}

/// Numbers from -127 to 127 are rounded, of two neighbours to the even one, and become a word of bytes: added to
/// 3 * 2^22, a number keeps no bits for the rest, and its last byte is what we want.
inline __device__ std::uint32_t nearest_bytes(const float4& v) {
  const auto bits = [](float small) { return static_cast<std::uint32_t>(__float_as_int(small + 0x1.8p23f)); };
  constexpr unsigned last_bytes = 0x0040, halves = 0x5410;
  return __byte_perm(__byte_perm(bits(v.x), bits(v.y), last_bytes), __byte_perm(bits(v.z), bits(v.w), last_bytes),
                     halves);
}
inline __device__ std::int32_t sum_of_bytes(std::uint32_t bytes) {
  return __dp4a(static_cast<int>(bytes), 0x01010101, 0);
}

/// The integers and their sums, as model/ops/row_kernels.cpp makes them. A group, 32 neighbours, is held by 8 lanes.
template <class Share>
__device__ void make_integers(const held_row<Share>& x, int n, std::int64_t row, const row_codes& codes) {
  const auto padded = static_cast<int>(padded_row(n));
  const float most = block_max<row_value::largest, Share>(x.thread_largest()),
              inverse = most > 0 ? 127.0f / most : 0.0f;
  auto* const q = reinterpret_cast<std::uint32_t*>(codes.q + row * padded);
  std::int32_t* const group_sums = codes.group_sums + row * (padded / 32);
  std::int32_t total = 0;
  x.each([&](int j, int place) {
    const std::uint32_t bytes = nearest_bytes(change([&](float v) { return v * inverse; }, x.of[j]));
    std::int32_t sum = sum_of_bytes(bytes);
    total += sum;
    for (unsigned step = 4; step > 0; step /= 2) sum += __shfl_xor_sync(whole_warp, sum, step);
    if (place * 4 >= padded) return;
    q[place] = bytes;
    if (threadIdx.x % 8 == 0) group_sums[place / 8] = sum;
  });
  total = block_sum<row_value::total, Share>(total);
  if (threadIdx.x != 0) return;
  codes.scales[row] = most / 127.0f;
  codes.sums[row] = total;
}

template <class Share>
__device__ void make_bf16(const held_row<Share>& x, int n, std::int64_t row, const row_codes& codes) {
  const auto padded = static_cast<int>(padded_row(n));
  auto* const to = reinterpret_cast<uint2*>(codes.bf16 + row * padded);
  x.each([&](int j, int place) {
    if (place * 4 < padded) to[place] = pack_bf16(x.of[j]);
  });
}

/// A row's block makes codes of the row, which is padded with zeros.
template <class Share>
__device__ void make_codes(const held_row<Share>& x, int n, std::int64_t row, const row_codes& codes) {
  if (codes.bf16) make_bf16(x, n, row, codes);
  if (codes.q) make_integers(x, n, row, codes);
}

}  // namespace troupe::cuda
