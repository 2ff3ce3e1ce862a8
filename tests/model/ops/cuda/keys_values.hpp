// Random keys and values in a cache on the device, and what the cache should hold.
#pragma once
#include <numeric>

#include "tests/model/ops/cuda/on_device.hpp"
#include "tests/model/rounded.hpp"

namespace troupe::cuda {

struct cache_shape {
  kv_kind kind;
  int heads, kv_heads, dim;
  std::int64_t q_stride() const { return padded_row(heads * dim); }
  std::int64_t kv_stride() const { return padded_row(kv_heads * dim); }
};

/// Rounds a head as the cache does.
inline void round_head(kv_kind kind, float* head, int dim) {
  float most = 0;
  for (int d = 0; d < dim; ++d) most = std::max(most, std::fabs(head[d]));
  const float inverse = most > 0 ? 127.0f / most : 0.0f, scale = most / 127.0f;
  for (int d = 0; d < dim; ++d) {
    if (kind == kv_kind::f16) head[d] = as_f16(head[d]);
    if (kind == kv_kind::i8) head[d] = std::nearbyint(head[d] * inverse) * scale;
  }
}

/// Sequences of several lengths with all their rows, in shuffled blocks.
struct sequences_data {
  cache_shape shape;
  std::vector<int> lengths;
  std::vector<int> first_rows;
  int rows = 0;
  std::int64_t table_stride = 0, blocks = 0;
  std::vector<float> q, k, v;  // [rows, stride]
  std::vector<std::int32_t> tables, row_sequences, row_positions;
  device_array<float> q_, k_, v_;
  device_array<std::int32_t> tables_;
  device_array<std::byte> memory;

  sequences_data(random_data& random, const cache_shape& s, const std::vector<int>& n)
      : shape(s),
        lengths(n),
        rows(std::accumulate(n.begin(), n.end(), 0)),
        table_stride(*std::max_element(n.begin(), n.end()) / 16 + 1),
        q(random_rows(random, rows, s.heads * s.dim, s.q_stride())),
        k(random_rows(random, rows, s.kv_heads * s.dim, s.kv_stride())),
        v(random_rows(random, rows, s.kv_heads * s.dim, s.kv_stride())),
        tables(make_tables()),
        q_(q),
        k_(k),
        v_(v),
        tables_(tables),
        memory(static_cast<std::size_t>(layer().block_bytes() * blocks)) {
    for (std::size_t s = 0; s < lengths.size(); ++s) {
      first_rows.push_back(static_cast<int>(row_sequences.size()));
      for (int position = 0; position < lengths[s]; ++position) {
        row_sequences.push_back(static_cast<std::int32_t>(s));
        row_positions.push_back(position);
      }
    }
  }

  kv_layer layer() const { return {shape.kind, memory.data(), shape.kv_heads, shape.dim}; }

  /// Stores the rows' keys and values, at most `at_once` rows in one call.
  void store(int at_once) const {
    const stream on;
    const device_array<std::int32_t> sequences(row_sequences), positions(row_positions);
    for (int first = 0; first < rows; first += at_once) {
      place_args a{.rows = std::min(at_once, rows - first)};
      a.places = {sequences.data() + first, positions.data() + first, tables_.data(), table_stride};
      a.cache = layer();
      a.heads = shape.heads;
      a.q = {q_.data() + first * shape.q_stride(), shape.q_stride()};
      a.k = {k_.data() + first * shape.kv_stride(), shape.kv_stride()};
      a.v = {v_.data() + first * shape.kv_stride(), shape.kv_stride()};
      place_heads(on, a);
    }
    on.wait();
  }

 private:
  std::vector<std::int32_t> make_tables() {
    const auto sequences = static_cast<std::int64_t>(lengths.size());
    blocks = sequences * table_stride + 3;
    std::vector<std::int32_t> all(static_cast<std::size_t>(sequences * table_stride));
    std::iota(all.begin(), all.end(), 3);
    std::shuffle(all.begin(), all.end(), std::minstd_rand(5));
    return all;
  }
};

}  // namespace troupe::cuda
