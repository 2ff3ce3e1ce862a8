// Keys and values of new positions go into their block of the cache. Compiled once per ISA.
#include "model/ops/attention_tile.hpp"

namespace troupe::TROUPE_ISA {
namespace {

inline void write(std::uint16_t* p, f32x16 a) {
  store_f16(p, a);
}
inline void write(float* p, f32x16 a) {
  store(p, a);
}

/// Keys are turned round: in a block a dimension of all positions lies together.
template <class Element>
void store_keys(const store_kv_args& a, Element* keys) {
  for (int row = 0; row < a.rows; ++row)
    for (int d = 0; d < a.head_dim; d += lanes) {
      Element part[lanes];
      write(part, floats_at(a.keys + row * a.row_stride, d, a.head_dim));
      const int dims = a.head_dim - d < lanes ? a.head_dim - d : lanes;
      for (int i = 0; i < dims; ++i) keys[(d + i) * lanes + a.slot + row] = part[i];
    }
}

template <class Element>
void store_values(const store_kv_args& a, Element* values) {
  for (int row = 0; row < a.rows; ++row)
    for (int d = 0; d < a.head_dim; d += lanes)
      write(values + (a.slot + row) * rounded_up<std::int64_t>(a.head_dim, lanes) + d,
            floats_at(a.values + row * a.row_stride, d, a.head_dim));
}

/// Shows a row as integers, sixteen at a time; returns their scale.
template <class Write>
float quantize_row(const float* from, int head_dim, Write write_part) {
  f32x16 largest = zero();
  for (int d = 0; d < head_dim; d += lanes) largest = max(largest, absolute(floats_at(from, d, head_dim)));
  const float most = max_of(largest);
  const f32x16 inverse = all(most > 0 ? 127.0f / most : 0.0f);
  for (int d = 0; d < head_dim; d += lanes) {
    std::int8_t part[lanes];
    store_i8(part, nearest(floats_at(from, d, head_dim) * inverse));
    write_part(d, part);
  }
  return most / 127.0f;
}

/// Two dimensions of a key, and two positions' values, lie side by side.
void store_integers(const store_kv_args& a) {
  auto* keys = reinterpret_cast<std::int8_t*>(a.block);
  std::int8_t* values = keys + kv_key_elements(a.head_dim);
  const std::int64_t padded = rounded_up<std::int64_t>(a.head_dim, lanes);
  auto* scales = reinterpret_cast<float*>(values + padded * lanes);
  for (int slot = a.slot; slot < a.slot + a.rows; ++slot) {
    const std::int64_t row = (slot - a.slot) * a.row_stride;
    scales[slot] = quantize_row(a.keys + row, a.head_dim, [&](int d, const std::int8_t* part) {
      for (int i = 0; i < lanes && d + i < a.head_dim; ++i)
        keys[((d + i) / 2 * lanes + slot) * 2 + (d + i) % 2] = part[i];
    });
    scales[lanes + slot] = quantize_row(a.values + row, a.head_dim, [&](int d, const std::int8_t* part) {
      for (int i = 0; i < lanes; ++i) values[(slot / 2 * padded + d + i) * 2 + slot % 2] = part[i];
    });
  }
}

template <class Element>
void store_rows(const store_kv_args& a) {
  auto* keys = reinterpret_cast<Element*>(a.block);
  store_keys(a, keys);
  store_values(a, keys + kv_key_elements(a.head_dim));
}

}  // namespace

void store_kv(const store_kv_args& a) {
  switch (a.kind) {
    case kv_kind::f32:
      return store_rows<float>(a);
    case kv_kind::f16:
      return store_rows<std::uint16_t>(a);
    case kv_kind::i8:
      return store_integers(a);
  }
}

}  // namespace troupe::TROUPE_ISA
