// For kernel sources alone: where a key or a value lies in a block.
#pragma once
#include "model/ops/cuda/ops.hpp"

namespace troupe::cuda {

/// One kv head's part of a block. It is one address alone: kernels hold several, and registers are few.
template <class Element>
struct head_block {
  Element* data;
  int padded_dim;

  __device__ head_block(const kv_layer& cache, std::int64_t block, int head)
      : padded_dim(static_cast<int>(rounded_up(cache.head_dim, 16))) {
    constexpr kv_kind kind = sizeof(Element) == 4 ? kv_kind::f32 : sizeof(Element) == 2 ? kv_kind::f16 : kv_kind::i8;
    const std::int64_t head_bytes = device_kv_head_bytes(kind, cache.head_dim);
    data = reinterpret_cast<Element*>(cache.data + (block * cache.heads + head) * head_bytes);
  }

  __device__ Element& key(int slot, int dim) const { return data[slot * padded_dim + dim]; }
  __device__ Element& value(int slot, int dim) const { return data[(positions + slot) * padded_dim + dim]; }
  // For i8.
  __device__ float& key_scale(int slot) const { return scales()[slot]; }
  __device__ float& value_scale(int slot) const { return scales()[positions + slot]; }

 private:
  static constexpr int positions = static_cast<int>(block_tokens);

  __device__ float* scales() const { return reinterpret_cast<float*>(data + 2 * positions * padded_dim); }
};

}  // namespace troupe::cuda
