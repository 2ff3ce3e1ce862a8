// Heads are normalized, turned and stored as on the host.
#include "tests/model/ops/cuda/keys_values.hpp"

namespace troupe::cuda {
namespace {

using cuda_keys_values = device_test;

/// What lies in the cache for one row and head: [0] the key, [1] the value.
std::array<std::vector<float>, 2> stored_head(const sequences_data& data, const std::vector<std::byte>& memory, int row,
                                              int head) {
  const kv_layer layer = data.layer();
  const int position = data.row_positions[std::size_t(row)], slot = position % 16, dim = layer.head_dim;
  const auto padded = static_cast<int>(rounded_up(dim, 16));
  const auto table = data.row_sequences[std::size_t(row)] * data.table_stride;
  const std::byte* block = memory.data() + data.tables[std::size_t(table + position / 16)] * layer.block_bytes() +
                           head * device_kv_head_bytes(layer.kind, dim);
  const auto number = [&](std::int64_t at) {
    if (layer.kind == kv_kind::f32) return reinterpret_cast<const float*>(block)[at];
    if (layer.kind == kv_kind::f16) return f16_to_f32(reinterpret_cast<const std::uint16_t*>(block)[at]);
    const auto* scales = reinterpret_cast<const float*>(block + padded * 32);
    return static_cast<float>(reinterpret_cast<const std::int8_t*>(block)[at]) *
           scales[at < padded * 16 ? slot : 16 + slot];
  };
  std::array<std::vector<float>, 2> both;
  for (int d = 0; d < dim; ++d) {
    both[0].push_back(number(slot * padded + d));
    both[1].push_back(number((16 + slot) * padded + d));
  }
  return both;
}

void normalize(float* head, const std::vector<float>& weight, int dim) {
  double squares = 0;
  for (int d = 0; d < dim; ++d) squares += double(head[d]) * head[d];
  for (int d = 0; d < dim; ++d) head[d] = float(head[d] / std::sqrt(squares / dim + 1e-5)) * weight[std::size_t(d)];
}

/// A head, and how much of it turns.
struct head_size {
  int dim, turned;
};

void expect_heads_placed(random_data& random, const std::vector<int>& lengths, const std::vector<head_size>& sizes) {
  const int positions_count = *std::max_element(lengths.begin(), lengths.end());
  for (const kv_kind kind : {kv_kind::f32, kv_kind::f16, kv_kind::i8})
    for (const auto& [dim, turned] : sizes) {
      const int pairs = turned / 2;
      const sequences_data data(random, {kind, 4, 2, dim}, lengths);
      const std::int64_t angle_count = std::int64_t{positions_count} * pairs;
      const auto norm = random_rows(random, 1, dim, dim),
                 angles = random_rows(random, 2 * positions_count, pairs, pairs);
      const device_array<float> norm_(norm), angles_(angles);
      const device_array<std::int32_t> sequences(data.row_sequences), positions(data.row_positions);
      place_args a{.rows = data.rows};
      a.places = {sequences.data(), positions.data(), data.tables_.data(), data.table_stride};
      a.cache = data.layer();
      a.heads = 4;
      a.k = {data.k_.data(), data.shape.kv_stride()};
      a.v = {data.v_.data(), data.shape.kv_stride()};
      a.q_norm = a.k_norm = norm_.data();
      a.norm_eps = 1e-5f;
      a.angles = {angles_.data(), angles_.data() + angle_count, pairs};
      const auto q = in_every_order([&] {
        const device_array<float> fresh(data.q);
        a.q = {fresh.data(), data.shape.q_stride()};
        const stream on;
        place_heads(on, a);
        on.wait();
        return fresh.read();
      });
      const auto memory = data.memory.read();
      for (int row = 0; row < data.rows; ++row) {
        const auto at = data.row_positions[std::size_t(row)] * pairs;
        const auto placed = [&, dim = dim, turned = turned](const std::vector<float>& from, std::int64_t stride,
                                                            int head) {
          std::vector<float> x(from.begin() + row * stride + head * dim,
                               from.begin() + row * stride + (head + 1) * dim);
          normalize(x.data(), norm, dim);
          kernels().rotate(x.data(), 1, dim, turned, angles.data() + at, angles.data() + angle_count + at);
          return x;
        };
        for (int head = 0; head < 4; ++head)
          expect_near(q.data() + row * data.shape.q_stride() + head * dim, placed(data.q, data.shape.q_stride(), head),
                      std::size_t(dim), 1e-5);
        for (int head = 0; head < 2; ++head) {
          const auto stored = stored_head(data, memory, row, head);
          const double share = kind == kv_kind::f32 ? 1e-5 : kind == kv_kind::f16 ? 6e-4 : 5e-3;
          expect_near(stored[0], placed(data.k, data.shape.kv_stride(), head), std::size_t(dim), share);
          std::vector<float> value(data.v.begin() + row * data.shape.kv_stride() + head * dim,
                                   data.v.begin() + row * data.shape.kv_stride() + (head + 1) * dim);
          round_head(kind, value.data(), dim);
          for (int d = 0; d < dim; ++d) ASSERT_EQ(stored[1][std::size_t(d)], value[std::size_t(d)]);
        }
      }
    }
}

TEST_F(cuda_keys_values, heads_are_normalized_and_turned_and_stored) {
  random_data random(21);
  expect_heads_placed(random, {19, 1, 5}, {{8, 8}, {24, 24}, {64, 64}, {130, 130}});
}

TEST_F(cuda_keys_values, heads_are_turned_in_part_or_not_at_all) {
  random_data random(24);
  expect_heads_placed(random, {19, 1, 5}, {{16, 12}, {96, 72}, {160, 34}, {8, 0}, {25, 0}, {130, 0}});
}

TEST_F(cuda_keys_values, heads_of_many_rows_are_as_those_of_few) {
  random_data random(23);
  expect_heads_placed(random, {250, 30}, {{24, 24}, {130, 130}, {128, 96}});
}

TEST_F(cuda_keys_values, rows_that_only_fill_a_pass_up_store_nothing) {
  random_data random(22);
  sequences_data data(random, {kv_kind::f16, 2, 1, 16}, {3});
  const auto before = data.memory.read();
  for (auto& position : data.row_positions) position = -1;
  data.store(3);
  EXPECT_TRUE(same_bits(data.memory.read(), before));
  EXPECT_TRUE(same_bits(data.q_.read(), data.q));
}

}  // namespace
}  // namespace troupe::cuda
