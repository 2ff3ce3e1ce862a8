// Compiled once per ISA. Operations on one row; rows are padded to 16 with zeros, and stay so.
#include "model/ops/kernels_isa.hpp"
#include "model/ops/vec.hpp"

namespace troupe::TROUPE_ISA {
namespace {

/// Sixteen inputs of a row, from the i-th on, to where a tile has them.
template <class Input>
void scatter(const quantized_row& into, std::int64_t i, const Input* sixteen, Input* tile) {
  if (into.tile.together > 4) {
    const std::int64_t part = i / into.tile.together * into.tile.rows + into.in_tile;
    std::memcpy(tile + part * into.tile.together + i % into.tile.together, sixteen, lanes * sizeof(Input));
    return;
  }
  Input* at = tile + (i / 4 * into.tile.rows + into.in_tile) * 4;
  for (int four = 0; four < 4; ++four)
    std::memcpy(at + four * into.tile.rows * 4, sixteen + four * 4, 4 * sizeof(Input));
}

void put_in_8_bits(const quantized_row& into, std::int64_t i, i32x16 codes) {
  std::int8_t bytes[lanes];
  store_i8(bytes, codes);
  scatter(into, i, bytes, into.q);
  if constexpr (wide_inputs) {
    std::int16_t wide[lanes];
    store_wide(wide, bytes);
    scatter(into, i, wide, into.wide);
  }
}

void put_in_16_bits(const quantized_row& into, std::int64_t i, i32x16 codes) {
  if constexpr (wide_inputs) {
    std::int16_t wide[lanes];
    store_wide(wide, codes);
    scatter(into, i, wide, into.wide);
  } else {
    const i32x16 high = high_part(codes);
    std::int8_t bytes[lanes];
    store_i8(bytes, high);
    scatter(into, i, bytes, into.q);
    store_i8(bytes, low_part(codes, high));
    scatter(into, i, bytes, into.low);
  }
}

}  // namespace

void rms_norm(const float* x, const float* weight, std::int64_t n, float eps, float* out) {
  f32x16 squares = zero();
  for (std::int64_t i = 0; i < n; i += lanes) squares = fma(load(x + i), load(x + i), squares);
  const f32x16 mean = all(sum_of(squares) / static_cast<float>(n) + eps);
  const f32x16 factor = all(1.0f) / root(mean);
  for (std::int64_t i = 0; i < n; i += lanes) store(out + i, (load(x + i) * factor) * load(weight + i));
}

void layer_norm(const float* x, const float* weight, const float* bias, std::int64_t n, float eps, float* out) {
  f32x16 total = zero();
  for (std::int64_t i = 0; i < n; i += lanes) total = total + load(x + i);
  const f32x16 mean = all(sum_of(total) / static_cast<float>(n));
  f32x16 squares = zero();
  for (std::int64_t i = 0; i < n; i += lanes) {
    const f32x16 d = valid(load(x + i) - mean, i, n);
    squares = fma(d, d, squares);
  }
  const f32x16 factor = all(1.0f) / root(all(sum_of(squares) / static_cast<float>(n) + eps));
  for (std::int64_t i = 0; i < n; i += lanes)
    store(out + i, fma((load(x + i) - mean) * factor, load(weight + i), bias ? load(bias + i) : zero()));
}

void swiglu(const float* gate, const float* up, std::int64_t n, float* out) {
  for (std::int64_t i = 0; i < n; i += lanes) {
    const f32x16 g = load(gate + i);
    store(out + i, (g * sigmoid(g)) * load(up + i));
  }
}

namespace {

/// 0.5 x (1 + tanh(u)) is x sigmoid(2u).
inline f32x16 gelu_of(f32x16 v) {
  const f32x16 inner = fma((v * v) * v, all(0.044715f), v);
  return v * sigmoid(inner * all(1.5957691216057308f));
}

}  // namespace

void geglu(const float* gate, const float* up, std::int64_t n, float* out) {
  for (std::int64_t i = 0; i < n; i += lanes) store(out + i, gelu_of(load(gate + i)) * load(up + i));
}

void clamped_swiglu(const float* gate, const float* up, std::int64_t n, float limit, float slope, float* out) {
  for (std::int64_t i = 0; i < n; i += lanes) {
    const f32x16 g = at_most(load(gate + i), limit), u = max(at_most(load(up + i), limit), all(-limit));
    store(out + i, (g * sigmoid(g * all(slope))) * (u + all(1.0f)));
  }
}

void gelu_tanh(const float* x, std::int64_t n, float* out) {
  for (std::int64_t i = 0; i < n; i += lanes) store(out + i, gelu_of(load(x + i)));
}

void squared_relu(const float* x, std::int64_t n, float* out) {
  for (std::int64_t i = 0; i < n; i += lanes) {
    const f32x16 v = max(load(x + i), zero());
    store(out + i, v * v);
  }
}

void add(const float* x, std::int64_t n, float* into) {
  for (std::int64_t i = 0; i < n; i += lanes) store(into + i, load(into + i) + load(x + i));
}

void multiply(float* x, std::int64_t n, float by) {
  for (std::int64_t i = 0; i < n; i += lanes) store(x + i, load(x + i) * all(by));
}

void cap(float* x, std::int64_t n, float most) {
  for (std::int64_t i = 0; i < n; i += lanes) store(x + i, capped(load(x + i), most));
}

void rotate(float* x, std::int64_t heads, std::int64_t dim, std::int64_t turned, const float* cosines,
            const float* sines) {
  const std::int64_t half = turned / 2;
  for (std::int64_t head = 0; head < heads; ++head, x += dim) {
    std::int64_t i = 0;
    for (; i + lanes <= half; i += lanes) {
      const f32x16 a = load(x + i), b = load(x + half + i), c = load(cosines + i), s = load(sines + i);
      store(x + i, a * c - b * s);
      store(x + half + i, b * c + a * s);
    }
    for (; i < half; ++i) {
      const float a = x[i], b = x[half + i];
      x[i] = a * cosines[i] - b * sines[i];
      x[half + i] = b * cosines[i] + a * sines[i];
    }
  }
}

void quantize(const float* x, std::int64_t padded, const quantized_row& into) {
  f32x16 largest = zero();
  for (std::int64_t i = 0; i < padded; i += lanes) largest = max(largest, absolute(load(x + i)));
  const float most = max_of(largest), highest = static_cast<float>(largest_input(into.bits));
  *into.scale = most / highest;
  const f32x16 inverse = all(most > 0 ? highest / most : 0.0f);
  const auto put = into.bits == input_bits::eight ? put_in_8_bits : put_in_16_bits;
  std::int32_t total = 0;
  for (std::int64_t i = 0; i < padded; i += 32) {
    const i32x16 first = nearest(load(x + i) * inverse), second = nearest(load(x + i + lanes) * inverse);
    put(into, i, first);
    put(into, i + lanes, second);
    const std::int32_t group_sum = sum_of(first + second);
    into.group_sums[i / 32 * into.tile.rows + into.in_tile] = group_sum;
    total += group_sum;
  }
  *into.sum = total;
}

float exponentials(const float* x, std::int64_t padded, float most, float* out) {
  f32x16 total = zero();
  for (std::int64_t i = 0; i < padded; i += lanes) {
    const f32x16 e = exponential(load(x + i) - all(most));
    store(out + i, e);
    total = total + e;
  }
  return sum_of(total);
}

}  // namespace troupe::TROUPE_ISA
