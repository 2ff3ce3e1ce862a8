// What products read, where an instruction set multiplies bytes as they are. AVX2 cannot: vec_avx2_products.hpp has the
// same in another form.
#pragma once

namespace troupe::TROUPE_ISA {

/// Whether inputs are also made in 16 bits, and how sixteen of them are written in the order of quantized_view::wide.
constexpr bool wide_inputs = false;
inline void store_wide(std::int16_t*, const std::int8_t*) {}
inline void store_wide(std::int16_t*, i32x16) {}

/// Inputs as products with bytes read them. Four inputs are multiplied in so many parts.
using byte_input = std::int8_t;
constexpr int byte_parts = 1;
inline const byte_input* byte_inputs(const quantized_view& q) {
  return q.q;
}
using byte_part = weights;
inline byte_part part_of(weights w, int) {
  return w;
}
inline inputs load_inputs(const byte_input* four, int) {
  return load_inputs(four);
}

/// The same with inputs in 16 bits.
struct fine_inputs {
  inputs high, low;
};
inline fine_inputs load_fine_inputs(const quantized_view& q, std::int64_t at, int) {
  return {load_inputs(q.q + at), load_inputs(q.low + at)};
}
struct fine_sums {
  sums high, low;
};
inline fine_sums start_fine(std::int32_t x) {
  return {start(0), start(x)};
}
inline fine_sums dot(fine_sums s, byte_part w, fine_inputs x) {
  return {dot(s.high, w, x.high), dot(s.low, w, x.low)};
}
inline sums whole(fine_sums s) {
  return times_256(s.high) + s.low;
}

/// The same with nibbles: sums of a group of 32 inputs.
using nibble_inputs = inputs;
inline nibble_inputs load_nibble_inputs(const std::int8_t* four) {
  return load_inputs(four);
}
using nibble_sums = sums;
/// How many inputs these hold the sums of, where nibbles stand for levels.
constexpr int inputs_of_levels = 32;
inline nibble_sums start_nibbles(std::int32_t x) {
  return start(x);
}
inline sums whole(nibble_sums s) {
  return s;
}

}  // namespace troupe::TROUPE_ISA
