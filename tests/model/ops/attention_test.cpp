#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "base/to_size.hpp"
#include "tests/model/ops/random_data.hpp"
#include "tests/model/ops/tested_tables.hpp"
#include "tests/model/rounded.hpp"

namespace troupe {
namespace {

/// One layer's cache for one sequence, with shuffled blocks, and the keys and values that went in.
struct filled_cache {
  kv_kind kind;
  int kv_heads, dim;
  std::int64_t positions;
  std::int64_t head_bytes, block_bytes;
  std::vector<std::int32_t> table;
  aligned_buffer<std::byte> memory;
  std::vector<float> keys, values;  // [position, kv_heads, dim], rounded as the cache does

  filled_cache(random_data& random, const kernel_table& store, kv_kind k, int heads, int d, std::int64_t n)
      : kind(k), kv_heads(heads), dim(d), positions(n) {
    const std::int64_t blocks = (n + 15) / 16;
    head_bytes = kv_head_bytes(kind, dim);
    block_bytes = head_bytes * kv_heads;
    table.resize(to_size(blocks));
    for (std::int64_t b = 0; b < blocks; ++b)
      table[to_size(b)] = static_cast<std::int32_t>((b * 7 + 3) % (blocks * 7 + 4));
    memory = aligned_buffer<std::byte>(to_size(block_bytes * (blocks * 7 + 4)));
    // what is never stored may be anything: here no numbers, as floats and as scales
    std::fill_n(memory.data(), memory.size(), std::byte{0xff});
    keys.resize(to_size(n * kv_heads * dim));
    values.resize(keys.size());
    for (auto& x : keys) x = random.value();
    for (auto& x : values) x = random.value();
    for (std::int64_t position = 0; position < n;) {
      // runs of any length that ends with its block
      const auto slot = static_cast<int>(position % 16);
      const auto rows = static_cast<int>(
          std::min<std::int64_t>(random.between(0, 1) ? 16 - slot : random.between(1, 16 - slot), n - position));
      for (int head = 0; head < kv_heads; ++head) {
        const std::int64_t at = (position * kv_heads + head) * dim;
        std::byte* block = memory.data() + table[to_size(position / 16)] * block_bytes;
        store.store_kv(
            {kind, block + head * head_bytes, slot, rows, dim, keys.data() + at, values.data() + at, kv_heads * dim});
      }
      position += rows;
    }
    round(keys);
    round(values);
  }

  void round(std::vector<float>& all) const {
    if (kind == kv_kind::f16)
      for (auto& x : all) x = as_f16(x);
    if (kind != kv_kind::i8) return;
    for (auto head = all.begin(); head != all.end(); head += dim) {
      float most = 0;
      for (int d = 0; d < dim; ++d) most = std::max(most, std::fabs(head[d]));
      for (int d = 0; d < dim; ++d) head[d] = std::nearbyint(head[d] * (127.0f / most)) * (most / 127.0f);
    }
  }
};

struct queries {
  int rows, group;
  std::int64_t window;
  float divisor = 8, cap = 0;
  std::vector<float> sinks = {};  // of each query head of the group; empty: none
};

std::vector<float> attend(const kernel_table& table, const filled_cache& cache, const queries& q, int head,
                          const float* x) {
  const std::int64_t stride = q.group * cache.dim;
  std::vector<float> out(to_size(q.rows * stride));
  aligned_buffer<float> scratch(to_size(attention_scratch(cache.positions, cache.dim)));
  attention_args args;
  args.kind = cache.kind;
  args.cache = cache.memory.data();
  args.block_bytes = cache.block_bytes;
  args.head_offset = head * cache.head_bytes;
  args.block_table = cache.table.data();
  args.head_dim = cache.dim;
  args.divisor = q.divisor;
  args.cap = q.cap;
  args.sinks = q.sinks.empty() ? nullptr : q.sinks.data();
  args.group = q.group;
  args.q = x;
  args.out = out.data();
  args.row_stride = stride;
  args.rows = q.rows;
  args.first_position = cache.positions - q.rows;
  args.window = q.window;
  args.scratch = scratch.data();
  table.attend(args);
  return out;
}

std::vector<float> reference(const filled_cache& cache, const queries& q, int head, const float* x) {
  std::vector<float> out;
  for (int row = 0; row < q.rows; ++row)
    for (int h = 0; h < q.group; ++h) {
      const float* query = x + (row * q.group + h) * cache.dim;
      const std::int64_t to = cache.positions - q.rows + row + 1,
                         from = q.window ? std::max<std::int64_t>(0, to - q.window) : 0;
      std::vector<double> weights;
      for (std::int64_t p = from; p < to; ++p) {
        const float* key = cache.keys.data() + (p * cache.kv_heads + head) * cache.dim;
        weights.push_back(std::inner_product(key, key + cache.dim, query, 0.0) / double(q.divisor));
        if (q.cap > 0) weights.back() = double(q.cap) * std::tanh(weights.back() / double(q.cap));
      }
      const double sink = q.sinks.empty() ? -INFINITY : q.sinks[to_size(h)];
      const double most = std::max(sink, *std::max_element(weights.begin(), weights.end()));
      double sum = std::exp(sink - most);
      for (auto& w : weights) sum += w = std::exp(w - most);
      for (int d = 0; d < cache.dim; ++d) {
        double value = 0;
        for (std::int64_t p = from; p < to; ++p)
          value += weights[to_size(p - from)] * cache.values[to_size((p * cache.kv_heads + head) * cache.dim + d)];
        out.push_back(static_cast<float>(value / sum));
      }
    }
  return out;
}

TEST(attention, equals_the_reference_and_itself_on_every_instruction_set) {
  random_data random(31);
  for (int round = 0; round < 120; ++round) {
    const auto kind = static_cast<kv_kind>(round % 3);
    const int dims[] = {7, 8, 16, 20, 64, 80, 128, 600};
    const int rows = random.between(1, 12);
    const filled_cache cache(random, kernels(), kind, random.between(1, 3), dims[random.between(0, 7)],
                             rows + random.between(0, 90));
    queries q{rows, random.between(1, 5), random.between(0, 2) ? 0 : random.between(1, 40),
              std::sqrt(static_cast<float>(cache.dim)), round % 4 ? 0.0f : 0.75f};
    for (int h = 0; round % 5 == 0 && h < q.group; ++h) q.sinks.push_back(3 * random.value());
    const auto x = random.rows(1, rows * q.group * cache.dim, rows * q.group * cache.dim);
    const int head = cache.kv_heads - 1;
    const auto expected = reference(cache, q, head, x.data());
    const auto generic = attend(*kernels_of("generic"), cache, q, head, x.data());
    // queries and weights are integers of 16 bits where keys and values are integers
    const double off = kind == kv_kind::i8 ? 5e-4 : 1e-5;
    for (std::size_t i = 0; i < expected.size(); ++i) ASSERT_NEAR(generic[i], expected[i], off);
    for (const kernel_table* table : tested_tables())
      ASSERT_EQ(attend(*table, cache, q, head, x.data()), generic) << table->isa;
  }
}

class attention_rows : public testing::TestWithParam<kv_kind> {};
INSTANTIATE_TEST_SUITE_P(kinds, attention_rows, testing::Values(kv_kind::f32, kv_kind::f16, kv_kind::i8));

void expect_the_same_bits_alone_and_among_others(kv_kind kind, float cap, const std::vector<float>& sinks) {
  random_data random(32);
  const int rows = 11;
  const filled_cache cache(random, kernels(), kind, 2, 64, 70);
  const queries all{rows, 3, 0, 8, cap, sinks};
  const auto x = random.rows(1, rows * 3 * 64, rows * 3 * 64);
  const auto together = attend(kernels(), cache, all, 1, x.data());
  for (int row = 0; row < rows; ++row) {
    // the same cache, seen from the row's own position
    attention_args args;
    aligned_buffer<float> scratch(attention_scratch(96, 64));
    std::vector<float> out(3 * 64);
    args = {kind,
            cache.memory.data(),
            cache.block_bytes,
            cache.head_bytes,
            cache.table.data(),
            64,
            3,
            x.data() + row * 3 * 64,
            out.data(),
            3 * 64,
            1,
            70 - rows + row,
            0,
            scratch.data(),
            all.divisor,
            all.cap,
            sinks.empty() ? nullptr : sinks.data()};
    kernels().attend(args);
    ASSERT_TRUE(std::equal(out.begin(), out.end(), together.begin() + row * 3 * 64)) << "row " << row;
  }
}

TEST_P(attention_rows, have_the_same_bits_alone_and_among_others) {
  for (const float cap : {0.0f, 2.0f}) expect_the_same_bits_alone_and_among_others(GetParam(), cap, {});
  expect_the_same_bits_alone_and_among_others(GetParam(), 0, {-1.5f, 0.25f, 40.0f});
}

TEST_P(attention_rows, give_next_to_nothing_where_a_sink_takes_it_all) {
  random_data random(33);
  const filled_cache cache(random, kernels(), GetParam(), 1, 32, 40);
  const auto x = random.rows(1, 2 * 32, 2 * 32);
  const auto out = attend(kernels(), cache, {1, 2, 0, 8, 0, {-1000.0f, 1000.0f}}, 0, x.data());
  const auto usual = attend(kernels(), cache, {1, 2, 0, 8}, 0, x.data());
  EXPECT_TRUE(std::equal(out.begin(), out.begin() + 32, usual.begin())) << "a sink that takes nothing changes nothing";
  EXPECT_TRUE(std::all_of(out.begin() + 32, out.end(), [](float value) { return value == 0; }));
}

}  // namespace
}  // namespace troupe
