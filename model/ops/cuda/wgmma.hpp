// For kernel sources alone: the tensor cores of Hopper, which multiply behind a warpgroup's back: 64 outputs, whose
// weights the lanes of four warps hold in registers, by some rows that lie in shared memory. Where the sources are
// compiled for the host, tests/cuda_host gives the same functions.
//
// A step is 32 bytes of each row. Warp w has outputs 16 w and on, with the fragments and sums of mma_s8 and mma_bf16;
// but all lanes' weights lie in order: lane (g, t) has the words t and t + 4 of a step. The bits are those of mma_bf16:
// tensor cores add the products of a step in no order at all. In f16 the first operand is what mma_f16 has, and the
// second one can also lie the other way round.
#pragma once
#include "model/ops/cuda/kernel.hpp"

namespace troupe::cuda {

constexpr int swizzled_row_bytes = 128;  ///< of rows in shared memory: four steps

/// Where a piece of 16 bytes of a row lies, so that tensor cores read eight rows without meeting in a bank. Tiles of
/// rows begin at multiples of 1,024 bytes.
inline __device__ int swizzled_piece(int row, int piece) {
  return row * (swizzled_row_bytes / 16) + (piece ^ (row & 7));
}

}  // namespace troupe::cuda

#if defined(__CUDACC__)

namespace troupe::cuda {

/// Shared memory that threads have written becomes what tensor cores read, once all threads have met behind this.
inline __device__ void show_to_tensor_cores() {
#if __CUDA_ARCH__ >= 900
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
}
/// Registers that were written before this are what the next products read.
inline __device__ void open_products() {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#endif
}
/// The products since the last call are a group.
inline __device__ void close_products() {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
#endif
}
/// Until so many groups are left. Sums and weights belong to the tensor cores until then.
template <int Left>
__device__ void wait_for_products() {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(Left) : "memory");
#endif
}

/// Sums are read behind the wait before this, and not earlier.
inline __device__ void receive(float& sum) {
  asm volatile("" : "+f"(sum));
}
inline __device__ void receive(int& sum) {
  asm volatile("" : "+r"(sum));
}

/// Has been computed where this stands, and not later: a gate behind it keeps that ahead of what follows.
inline __device__ void settle(std::uint32_t& word) {
  asm volatile("" : "+r"(word));
}

/// How the tensor cores find something in swizzled tiles of rows: its address, 1,024 bytes from eight rows to the next,
/// and how far the next tile is.
inline __device__ std::uint64_t swizzled_descriptor(const void* tile, int offset, int next_tile) {
  constexpr std::uint64_t layout = std::uint64_t{1} << 62 | std::uint64_t{1024 >> 4} << 32;
  const auto address = static_cast<std::uint32_t>(__cvta_generic_to_shared(tile));
  return layout | (((address & 0x3ffff) >> 4 | next_tile >> 4 << 16) + (offset >> 4));
}
/// A step of all rows: no tile follows.
inline __device__ std::uint64_t rows_descriptor(const void* tile, int step) {
  return swizzled_descriptor(tile, step * 32, 16);
}
/// 16 rows of tiles that lie so far from each other.
inline __device__ std::uint64_t columns_descriptor(const void* tile, int step, int next_tile) {
  return swizzled_descriptor(tile, step * 16 * swizzled_row_bytes, next_tile);
}

// The sums of eight, 16, 32 … rows as operands, and their places in the text of an instruction.
#define TROUPE_SUMS_1(how, c, j) how(c[j][0]), how(c[j][1]), how(c[j][2]), how(c[j][3])
#define TROUPE_SUMS_2(how, c, j) TROUPE_SUMS_1(how, c, j), TROUPE_SUMS_1(how, c, j + 1)
#define TROUPE_SUMS_4(how, c, j) TROUPE_SUMS_2(how, c, j), TROUPE_SUMS_2(how, c, j + 2)
#define TROUPE_SUMS_8(how, c, j) TROUPE_SUMS_4(how, c, j), TROUPE_SUMS_4(how, c, j + 4)
#define TROUPE_SUMS_16(how, c, j) TROUPE_SUMS_8(how, c, j), TROUPE_SUMS_8(how, c, j + 8)
#define TROUPE_FLOAT_SUM(x) "+f"(x)
#define TROUPE_INT_SUM(x) "+r"(x)
#define TROUPE_PLACES_8 "%0, %1, %2, %3, %4, %5, %6, %7"
#define TROUPE_PLACES_16 TROUPE_PLACES_8 ", %8, %9, %10, %11, %12, %13, %14, %15"
#define TROUPE_PLACES_32 \
  TROUPE_PLACES_16       \
  ", %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define TROUPE_PLACES_64                                                               \
  TROUPE_PLACES_32                                                                     \
  ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, " \
  "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"

// `sums`, `weights`: %0 … ; the last five operands are four registers of weights, the rows' descriptor, and whether
// sums go on or begin.
#define TROUPE_WGMMA(name, end, eights, sum, places, a0, a1, a2, a3, rows, go_on)                                 \
  asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %" #go_on ", 0;\nwgmma.mma_async.sync.aligned." name " {" places \
               "}, {%" #a0 ", %" #a1 ", %" #a2 ", %" #a3 "}, %" #rows ", p" end ";\n}\n"                          \
               : TROUPE_SUMS_##eights(sum, c, 0)                                                                  \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(where), "r"(int{goes_on}))

#define TROUPE_WGMMA_OF_EIGHTS(type, end, sum)                                          \
  if constexpr (Eights == 2)                                                            \
    TROUPE_WGMMA("m64n16" type, end, 2, sum, TROUPE_PLACES_8, 8, 9, 10, 11, 12, 13);    \
  else if constexpr (Eights == 4)                                                       \
    TROUPE_WGMMA("m64n32" type, end, 4, sum, TROUPE_PLACES_16, 16, 17, 18, 19, 20, 21); \
  else if constexpr (Eights == 8)                                                       \
    TROUPE_WGMMA("m64n64" type, end, 8, sum, TROUPE_PLACES_32, 32, 33, 34, 35, 36, 37); \
  else                                                                                  \
    TROUPE_WGMMA("m64n128" type, end, 16, sum, TROUPE_PLACES_64, 64, 65, 66, 67, 68, 69)

/// c += weights times a step of the rows, or c = that. All four warps of a warpgroup call it.
template <int Eights>
__device__ void multiply_step(float (&c)[Eights][4], const std::uint32_t (&a)[4], const void* tile, int step,
                              bool goes_on) {
  static_assert(Eights == 2 || Eights == 4 || Eights == 8 || Eights == 16);
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  const std::uint64_t where = rows_descriptor(tile, step);
  TROUPE_WGMMA_OF_EIGHTS("k16.f32.bf16.bf16", ", 1, 1, 0", TROUPE_FLOAT_SUM);
#elif defined(__CUDA_ARCH__)
  __trap();
#endif
}
template <int Eights>
__device__ void multiply_step(int (&c)[Eights][4], const std::uint32_t (&a)[4], const void* tile, int step,
                              bool goes_on) {
  static_assert(Eights == 2 || Eights == 4 || Eights == 8 || Eights == 16);
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  const std::uint64_t where = rows_descriptor(tile, step);
  TROUPE_WGMMA_OF_EIGHTS("k32.s32.s8.s8", "", TROUPE_INT_SUM);
#elif defined(__CUDA_ARCH__)
  __trap();
#endif
}
/// The same in f16.
template <int Eights>
__device__ void multiply_f16_step(float (&c)[Eights][4], const std::uint32_t (&a)[4], const void* tile, int step,
                                  bool goes_on) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  const std::uint64_t where = rows_descriptor(tile, step);
  TROUPE_WGMMA_OF_EIGHTS("k16.f32.f16.f16", ", 1, 1, 0", TROUPE_FLOAT_SUM);
#elif defined(__CUDA_ARCH__)
  __trap();
#endif
}
/// The other way round: c += a times 16 rows, so that c has their columns. A tile has 64 of them, and the next ones lie
/// so many bytes behind.
template <int Eights>
__device__ void multiply_f16_columns(float (&c)[Eights][4], const std::uint32_t (&a)[4], const void* tile, int step,
                                     int next_tile, bool goes_on) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  const std::uint64_t where = columns_descriptor(tile, step, next_tile);
  TROUPE_WGMMA_OF_EIGHTS("k16.f32.f16.f16", ", 1, 1, 1", TROUPE_FLOAT_SUM);
#elif defined(__CUDA_ARCH__)
  __trap();
#endif
}

#undef TROUPE_WGMMA_OF_EIGHTS
#undef TROUPE_WGMMA
#undef TROUPE_PLACES_64
#undef TROUPE_PLACES_32
#undef TROUPE_PLACES_16
#undef TROUPE_PLACES_8
#undef TROUPE_INT_SUM
#undef TROUPE_FLOAT_SUM
#undef TROUPE_SUMS_16
#undef TROUPE_SUMS_8
#undef TROUPE_SUMS_4
#undef TROUPE_SUMS_2
#undef TROUPE_SUMS_1

}  // namespace troupe::cuda
#else
#include <cuda_host/wgmma.hpp>
#endif
