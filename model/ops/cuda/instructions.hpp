// What kernels need and C++ has no word for: tensor cores, copies into shared memory, 16-bit floats. Where the sources
// are compiled for the host, tests/cuda_host gives the same functions.
#pragma once

#if defined(__CUDACC__)
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstddef>
#include <cstdint>

namespace troupe::cuda {

inline __device__ float f16_value(std::uint16_t bits) {
  return __half2float(__ushort_as_half(bits));
}
inline __device__ std::uint16_t f16_bits(float value) {
  return __half_as_ushort(__float2half_rn(value));
}
inline __device__ std::uint16_t bf16_bits(float value) {
  return __bfloat16_as_ushort(__float2bfloat16_rn(value));
}
inline __device__ float bf16_value(std::uint16_t bits) {
  return __bfloat162float(__ushort_as_bfloat16(bits));
}

/// Eight bytes that no other thread asks for.
inline __device__ uint2 read_once(const void* global) {
  uint2 words;
  asm("ld.global.nc.L1::no_allocate.v2.u32 {%0, %1}, [%2];" : "=r"(words.x), "=r"(words.y) : "l"(global));
  return words;
}

/// The 128 bytes around it come into the L2 cache.
inline __device__ void prefetch_line(const void* global) {
  asm volatile("prefetch.global.L2 [%0];" ::"l"(global));
}

// Within two units in the last place; numbers too small to be normal are 0.
inline __device__ float quick_exp2(float x) {
  float result;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
}
inline __device__ float quick_reciprocal(float x) {
  float result;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
}

/// The first is in the low half.
inline __device__ std::uint32_t pack_f16(float low, float high) {
  std::uint32_t both;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
  return both;
}
/// Four int8 as f16, which has them all.
inline __device__ uint2 f16_of_int8(std::uint32_t four) {
  constexpr std::uint32_t exponents = 0x64646464u, offsets = 0x64806480u;  // 0x6400 + n is 1024 + n, 0x6480 is 1152
  const std::uint32_t above_zero = four ^ 0x80808080u;                     // n + 128
  uint2 numbers;
  asm("sub.f16x2 %0, %1, %2;" : "=r"(numbers.x) : "r"(__byte_perm(above_zero, exponents, 0x4140)), "r"(offsets));
  asm("sub.f16x2 %0, %1, %2;" : "=r"(numbers.y) : "r"(__byte_perm(above_zero, exponents, 0x4342)), "r"(offsets));
  return numbers;
}

/// A block's dynamic shared memory. A kernel that has some has no other.
inline __device__ std::byte* dynamic_shared() {
  extern __shared__ __align__(1024) std::byte memory[];
  return memory;
}

/// First in a kernel that was started early. The next kernel may begin from now on; this one goes on when all that was
/// put on the stream before it has ended and can be read.
inline __device__ void await_last_kernel() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;");
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

/// 16 bytes, which land when they are waited for.
inline __device__ void copy_async(void* shared, const void* global) {
  const auto to = static_cast<unsigned>(__cvta_generic_to_shared(shared));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(global) : "memory");
}
/// The same, or zeros, which take no branch.
inline __device__ void copy_async_or_clear(void* shared, const void* global, bool is_there) {
  const auto to = static_cast<unsigned>(__cvta_generic_to_shared(shared));
  const int bytes = is_there ? 16 : 0;
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(global), "r"(bytes) : "memory");
}
/// The copies since the last call are a group.
inline __device__ void close_copies() {
  asm volatile("cp.async.commit_group;");
}
/// Until so many of this thread's groups are left.
template <int Left>
__device__ void wait_for_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(Left) : "memory");
}

/// Four matrices of 8 x 8 16-bit numbers out of shared memory for a warp. Lane l says where row l % 8 of matrix l / 8
/// begins, 16 bytes, and gets of every matrix two neighbours of row l / 4: those of columns l % 4 * 2 and the next.
inline __device__ void load_matrices(std::uint32_t (&words)[4], const void* row) {
  const auto from = static_cast<unsigned>(__cvta_generic_to_shared(row));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
               : "r"(from)
               : "memory");
}
/// The same of the transposed matrices: neighbours of column l / 4.
inline __device__ void load_transposed(std::uint32_t (&words)[4], const void* row) {
  const auto from = static_cast<unsigned>(__cvta_generic_to_shared(row));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
               : "r"(from)
               : "memory");
}

/// c += a b for a warp: a [16, 32], b [32, 8], c [16, 8]; lanes hold fragments as PTX's mma.m16n8k32 says.
inline __device__ void mma_s8(int (&c)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
/// The same with a [16, 16], b [16, 8].
inline __device__ void mma_f16(float (&c)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, "
      "%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
inline __device__ void mma_bf16(float (&c)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, "
      "%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

}  // namespace troupe::cuda
#else
#include <cuda_host/instructions.hpp>
#endif
