// Compiled once per ISA. Loops that do nothing but keep one resource busy: what the machine allows.
#include "model/ops/kernels_isa.hpp"
#include "model/ops/vec.hpp"

namespace troupe::TROUPE_ISA {
namespace {

constexpr int chains = vectors_in_registers < 16 ? 6 : 12;
constexpr int chains_of_input = vectors_in_registers < 16 ? 1 : 2;

/// The compiler must believe that the result is used.
inline void use(f32x16 value) {
  volatile float sink = sum_of(value);
  (void)sink;
}

/// The compiler must believe that these inputs are new, so that it makes their products again. Chains share them as
/// blocks do in a tile, so that loads are not what is measured; they differ in where they start.
inline void renew(const void* inputs) {
  asm volatile("" ::"r"(inputs) : "memory");
}

}  // namespace

std::int64_t spin_int8(std::int64_t rounds) {
  const std::uint8_t bytes[64] = {1, 2, 3};
  byte_input x[chains / chains_of_input * 4] = {1, -1, 2, -2};
  const byte_part w = part_of(load_weights(bytes), 0);
  sums s[chains];
  repeat<chains>([&](int k) INLINED { s[k] = start(k); });
  for (std::int64_t i = 0; i < rounds; ++i) {
    renew(x);
    repeat<chains>([&](int k) INLINED { s[k] = dot(s[k], w, load_inputs(x + k / chains_of_input * 4, 0)); });
  }
  repeat<chains>([&](int k) INLINED { use(to_float(s[k])); });
  return rounds * chains * 128 / byte_parts;
}

std::int64_t spin_int4(std::int64_t rounds) {
  const std::uint8_t bytes[64] = {1, 2, 3};
  std::int8_t x[chains / chains_of_input * 4] = {1, -1, 2, -2};
  const weights w = low_nibbles(load_weights(bytes));
  nibble_sums s[chains];
  repeat<chains>([&](int k) INLINED { s[k] = start_nibbles(2 * k); });
  for (std::int64_t i = 0; i < rounds; ++i) {
    renew(x);
    repeat<chains>([&](int k) INLINED { s[k] = dot(s[k], w, load_nibble_inputs(x + k / chains_of_input * 4)); });
  }
  repeat<chains>([&](int k) INLINED { use(to_float(whole(s[k]))); });
  return rounds * chains * 128;
}

std::int64_t spin_fma(std::int64_t rounds) {
  f32x16 s[chains];
  repeat<chains>([&](int k) INLINED { s[k] = all(0.5f); });
  const f32x16 factor = all(0.999f), more = all(0.001f);
  for (std::int64_t i = 0; i < rounds; ++i) repeat<chains>([&](int k) INLINED { s[k] = fma(s[k], factor, more); });
  repeat<chains>([&](int k) INLINED { use(s[k]); });
  return rounds * chains * 32;
}

/// Several streams at a time: one alone does not keep enough requests under way.
std::int64_t read(const std::byte* data, std::int64_t bytes) {
  constexpr int streams = 4;
  constexpr std::int64_t ahead = 4096;
  sums s[streams] = {start(0), start(0), start(0), start(0)};
  const auto* p = reinterpret_cast<const std::uint8_t*>(data);
  const byte_input ones[4] = {1, 1, 1, 1};
  const inputs x = load_inputs(ones, 0);
  const std::int64_t part = bytes / streams / 64 * 64;
  for (std::int64_t i = 0; i < part; i += 64)
    repeat<streams>([&](int k) INLINED {
      const std::uint8_t* at = p + k * part + i;
      __builtin_prefetch(at + ahead, 0, 2);
      s[k] = dot(s[k], part_of(load_weights(at), 0), x);
    });
  use(to_float((s[0] + s[1]) + (s[2] + s[3])));
  return streams * part;
}

}  // namespace troupe::TROUPE_ISA
