// For kernel sources alone: where a key or a value lies in a block.
#pragma once
#include "model/ops/cuda/ops.hpp"

namespace troupe::cuda {

/// One kv head's part of a block.
template <class Element>
struct head_block {
  Element *keys, *values;
  float *key_scales, *value_scales;  // for i8
  int padded_dim;

  __device__ head_block(const kv_layer& cache, std::int64_t block, int head)
      : padded_dim(static_cast<int>(rounded_up(cache.head_dim, 16))) {
    constexpr kv_kind kind = sizeof(Element) == 4 ? kv_kind::f32 : sizeof(Element) == 2 ? kv_kind::f16 : kv_kind::i8;
    const std::int64_t head_bytes = device_kv_head_bytes(kind, cache.head_dim);
    keys = reinterpret_cast<Element*>(cache.data + (block * cache.heads + head) * head_bytes);
    values = keys + kv_positions * padded_dim;
    key_scales = reinterpret_cast<float*>(values + kv_positions * padded_dim);
    value_scales = key_scales + kv_positions;
  }

  __device__ Element& key(int slot, int dim) const { return keys[slot * padded_dim + dim]; }
  __device__ Element& value(int slot, int dim) const { return values[dim * static_cast<int>(kv_positions) + slot]; }
};

}  // namespace troupe::cuda
