// Sixteen floats, sixteen integer sums and sixty-four weight bytes, the same operations on every instruction set.
// Included only by the kernel sources, which are compiled once per ISA inside namespace troupe::TROUPE_ISA.
//
// Promise 1 rests on this header: each operation rounds exactly alike everywhere. fma rounds once (emulated exactly
// where the processor has none), reductions add lane i to lane i + 8, + 4, + 2, + 1, and integer sums are exact.
//
// Each instruction set has a file with the same types and functions; here is what is made of them.
#pragma once

#include "model/ops/kernels.hpp"

// In this order: each file builds on the types of those before it.
// clang-format off
#if defined(__AVX512F__)
#include "model/ops/vec_avx512.hpp"
#include "model/ops/vec_bytes.hpp"
#elif defined(__AVXVNNI__)
#include "model/ops/vec_avx2.hpp"
#include "model/ops/vec_avx_vnni_products.hpp"
#include "model/ops/vec_bytes.hpp"
#elif defined(__AVX2__)
#include "model/ops/vec_avx2.hpp"
#include "model/ops/vec_avx2_products.hpp"
#else
#include "model/ops/vec_generic.hpp"
#include "model/ops/vec_bytes.hpp"
#endif
// clang-format on

/// For the small functions that `repeat` writes out.
#define INLINED __attribute__((always_inline))

namespace troupe::TROUPE_ISA {

/// A number that the compiler knows.
template <int N>
struct number {
  constexpr operator int() const { return N; }
};

/// f(0) … f(N - 1), written out: arrays of sums that are indexed by constants alone stay in registers. (A loop with an
/// unroll pragma is unrolled too late for GCC to take the array apart.)
template <int N, class F>
INLINED inline void repeat(F&& f) {
  if constexpr (N > 0) {
    repeat<N - 1>(f);
    f(number<N - 1>{});
  }
}

constexpr int lanes = outs_per_block;  // of a vector of floats
constexpr float minus_infinity = -__builtin_inff();

inline f32x16 where_not_above(f32x16 test, float limit, f32x16 a) {
  return a - where_above(test, limit, a);
}

inline float sum_of(f32x16 a) {
  float l[16];
  store(l, a);
  for (int half = 8; half; half /= 2)
    for (int i = 0; i < half; ++i) l[i] += l[i + half];
  return l[0];
}

/// e^x within 2 units in the last place; 0 below -87, where results would be subnormal.
inline f32x16 exponential(f32x16 x) {
  const f32x16 limited = max(all(-87.0f), x);
  const i32x16 n = nearest(limited * all(1.44269504088896341f));
  const f32x16 k = to_float(n);
  f32x16 r = fma(k, all(-0.693145751953125f), limited);
  r = fma(k, all(-1.42860682030941723212e-6f), r);
  f32x16 p = all(1.9875691500e-4f);
  p = fma(p, r, all(1.3981999507e-3f));
  p = fma(p, r, all(8.3334519073e-3f));
  p = fma(p, r, all(4.1665795894e-2f));
  p = fma(p, r, all(1.6666665459e-1f));
  p = fma(p, r, all(5.0000001201e-1f));
  p = fma(p, r * r, r) + all(1.0f);
  return where_above(x, -87.0f, times_power_of_two(p, n));
}

/// 1 / (1 + e^-x), without overflow for either sign: with e = e^-|x| it is 1 / (1 + e), or the rest to 1.
INLINED inline f32x16 sigmoid(f32x16 x) {
  const f32x16 e = exponential(zero() - absolute(x));
  const f32x16 share = all(1.0f) / (all(1.0f) + e);
  return where_above(x, 0.0f, share) + where_not_above(x, 0.0f, e * share);
}

/// ln(1 + e^x), within some units in the last place: what is above zero of x, and ln(1 + e) with e = e^-|x|, which is
/// 2 (s + s^3/3 + s^5/5 + …) with s = e / (2 + e), at most a third.
INLINED inline f32x16 softplus(f32x16 x) {
  const f32x16 e = exponential(zero() - absolute(x));
  const f32x16 s = e / (all(2.0f) + e), square = s * s;
  f32x16 series = all(1.0f / 15.0f);
  for (int odd = 13; odd >= 1; odd -= 2) series = fma(series, square, all(1.0f / static_cast<float>(odd)));
  return fma(s * all(2.0f), series, max(x, zero()));
}

INLINED inline f32x16 at_most(f32x16 x, float limit) {
  return zero() - max(zero() - x, all(-limit));
}

/// cap * tanh(x / cap), where tanh(u) is 2 sigmoid(2u) - 1.
INLINED inline f32x16 capped(f32x16 x, float cap) {
  return fma(sigmoid(x * all(2.0f / cap)), all(2.0f * cap), all(-cap));
}

/// The sixteen from i on of a row of n; zeros behind its end.
INLINED inline f32x16 valid(f32x16 a, std::int64_t i, std::int64_t n) {
  return i + 16 <= n ? a : keep(a, 0, static_cast<int>(n - i), 0.0f);
}

}  // namespace troupe::TROUPE_ISA
