// Attention against plain sums in double, and promise 1: whatever the chunks of rows, the tiles and the sharing out.
#include <limits>

#include "tests/model/ops/cuda/keys_values.hpp"
#include "tests/model/ops/cuda/older_device.hpp"

namespace troupe::cuda {
namespace {

using cuda_attention = device_test;

/// The answer of one row and query head, from keys and values as the cache rounded them.
std::vector<double> expected_head(const sequences_data& data, int row, int head, int window, float divisor = 0,
                                  float cap = 0) {
  const cache_shape& s = data.shape;
  const int position = data.row_positions[std::size_t(row)], first_row = row - position;
  const int from = window && position + 1 > window ? position + 1 - window : 0;
  const int kv_head = head / (s.heads / s.kv_heads);
  const float* q = data.q.data() + row * s.q_stride() + head * s.dim;
  const auto head_of = [&](const std::vector<float>& all, int p) {
    const float* at = all.data() + (first_row + p) * s.kv_stride() + kv_head * s.dim;
    std::vector<float> x(at, at + s.dim);
    round_head(s.kind, x.data(), s.dim);
    return x;
  };
  std::vector<double> scores, out(static_cast<std::size_t>(s.dim));
  for (int p = from; p <= position; ++p) {
    const auto k = head_of(data.k, p);
    scores.push_back(std::inner_product(k.begin(), k.end(), q, 0.0) /
                     double(divisor > 0 ? divisor : std::sqrt(float(s.dim))));
    if (cap > 0) scores.back() = double(cap) * std::tanh(scores.back() / double(cap));
  }
  const double most = *std::max_element(scores.begin(), scores.end());
  double sum = 0;
  for (double& score : scores) sum += score = std::exp(score - most);
  for (int p = from; p <= position; ++p) {
    const auto v = head_of(data.v, p);
    for (std::size_t d = 0; d < out.size(); ++d) out[d] += scores[std::size_t(p - from)] / sum * v[d];
  }
  return out;
}

/// Tensor cores get queries, weights and values as f16: each rounding moves a number by up to 1/2048 of itself. In
/// these tests an answer's root mean square error is then 0.6e-4 to 1.9e-4 of its largest number, and the worst
/// one 1.1e-3.
double allowed_share(kv_kind kind) {
  return kind == kv_kind::f32 ? 1e-3 : 2e-3;
}

constexpr std::int64_t all_scratch = std::numeric_limits<std::int64_t>::max();

/// Some rows of some sequences, as one op.
struct row_range {
  int sequence, first, rows;
  bool is_wide = false;
};
std::vector<float> attend_ranges(const sequences_data& data, const std::vector<row_range>& ranges, int window,
                                 std::int64_t most_scratch, float* lent_scratch = nullptr, float divisor = 0,
                                 float cap = 0) {
  const int group = data.shape.heads / data.shape.kv_heads;
  std::vector<attention_tile> tiles, wide_tiles;
  std::vector<std::int32_t> sequences, positions;
  std::vector<float> q;
  int highest = 0, most_queries = 1;
  for (const row_range& range : ranges) {
    const int queries = range.is_wide ? wide_tile_queries : tile_queries;
    if (!range.is_wide) most_queries = std::max(most_queries, std::min(range.rows * group, tile_queries));
    for (int query = 0; query < range.rows * group; query += queries)
      (range.is_wide ? wide_tiles : tiles).push_back({static_cast<int>(sequences.size()), range.rows, query});
    for (int i = 0; i < range.rows; ++i) {
      const auto row = data.first_rows[std::size_t(range.sequence)] + range.first + i;
      sequences.push_back(range.sequence);
      positions.push_back(range.first + i);
      highest = std::max(highest, range.first + i + 1);
      q.insert(q.end(), data.q.begin() + row * data.shape.q_stride(),
               data.q.begin() + (row + 1) * data.shape.q_stride());
    }
    tiles.push_back({});  // what fills a graph's tiles up
  }
  const auto tile_count = static_cast<int>(tiles.size());
  tiles.insert(tiles.end(), wide_tiles.begin(), wide_tiles.end());
  const device_array<attention_tile> tiles_(tiles);
  const device_array<std::int32_t> sequences_(sequences), positions_(positions);
  const device_array<float> q_(q), out(q);
  attention_args a;
  a.cache = data.layer();
  a.places = {sequences_.data(), positions_.data(), data.tables_.data(), data.table_stride};
  a.heads = data.shape.heads;
  a.tiles = tiles_.data();
  a.tile_count = tile_count;
  a.wide_tile_count = static_cast<int>(wide_tiles.size());
  a.most_queries = most_queries;
  a.window = window;
  a.divisor = divisor > 0 ? divisor : std::sqrt(static_cast<float>(data.shape.dim));
  a.cap = cap;
  a.positions = highest;
  a.q = {q_.data(), data.shape.q_stride()};
  a.out = {out.data(), data.shape.q_stride()};
  a.scratch_floats = std::min(most_scratch, attention_scratch_floats(a.cache, a.positions));
  const device_array<float> scratch(static_cast<std::size_t>(a.scratch_floats));
  a.scratch = lent_scratch ? lent_scratch : scratch.data();
  const stream on;
  attend(on, a);
  on.wait();
  return out.read();
}

std::vector<row_range> all_rows(const sequences_data& data, bool is_wide = false) {
  std::vector<row_range> ranges;
  for (std::size_t s = 0; s < data.lengths.size(); ++s)
    ranges.push_back({static_cast<int>(s), 0, data.lengths[s], is_wide});
  return ranges;
}

void expect_correct(const sequences_data& data, const std::vector<float>& got, int window, int every, float divisor = 0,
                    float cap = 0) {
  for (int row = 0; row < data.rows; row += every)
    for (int head = 0; head < data.shape.heads; ++head) {
      SCOPED_TRACE(testing::Message() << "row " << row << " head " << head);
      expect_near(got.data() + row * data.shape.q_stride() + head * data.shape.dim,
                  expected_head(data, row, head, window, divisor, cap), std::size_t(data.shape.dim),
                  allowed_share(data.shape.kind));
    }
}

TEST_F(cuda_attention, equals_plain_sums_for_every_kind_of_cache_and_head) {
  random_data random(31);
  const std::array<int, 3> shapes[] = {{4, 2, 16}, {6, 1, 8}, {2, 2, 40}, {3, 1, 104}, {20, 1, 64}, {1, 1, 200}};
  for (const kv_kind kind : {kv_kind::f32, kv_kind::f16, kv_kind::i8})
    for (const auto& [heads, kv_heads, dim] : shapes)
      for (const int window : {0, 21}) {
        SCOPED_TRACE(testing::Message() << "kind " << int(kind) << " heads " << heads << " dim " << dim << " window "
                                        << window);
        const sequences_data data(random, {kind, heads, kv_heads, dim}, {1, 41});
        data.store(50);
        expect_correct(data, attend_ranges(data, all_rows(data), window, all_scratch), window, 5);
      }
}

TEST_F(cuda_attention, scores_are_divided_by_another_root) {
  random_data random(40);
  for (const kv_kind kind : {kv_kind::f32, kv_kind::f16, kv_kind::i8}) {
    const sequences_data data(random, {kind, 4, 2, 16}, {1, 41});
    data.store(50);
    expect_correct(data, attend_ranges(data, all_rows(data), 0, all_scratch, nullptr, 7), 0, 5, 7);
  }
}

/// By tiles of all widths, shared out or not.
TEST_F(cuda_attention, scores_are_capped) {
  random_data random(41);
  for (const kv_kind kind : {kv_kind::f32, kv_kind::f16, kv_kind::i8})
    for (const int dim : {16, 128, 200}) {
      SCOPED_TRACE(testing::Message() << "kind " << int(kind) << " dim " << dim);
      const sequences_data data(random, {kind, 4, 2, dim}, {1, 150});
      data.store(160);
      const auto attend_all = [&](bool is_wide, std::int64_t scratch) {
        return attend_ranges(data, all_rows(data, is_wide), 70, scratch, nullptr, 2, 0.75f);
      };
      const auto got = attend_all(false, all_scratch);
      expect_correct(data, got, 70, 29, 2, 0.75f);
      EXPECT_TRUE(same_bits(got, attend_all(false, 0)));
      EXPECT_TRUE(same_bits(got, attend_all(true, all_scratch)));
    }
}

TEST_F(cuda_attention, wide_tiles_give_the_same_bits) {
  random_data random(38);
  const std::array<int, 3> shapes[] = {{3, 1, 64}, {2, 1, 128}, {2, 2, 40}, {1, 1, 200}};
  for (const kv_kind kind : {kv_kind::f32, kv_kind::f16, kv_kind::i8})
    for (const auto& [heads, kv_heads, dim] : shapes)
      for (const int window : {0, 70}) {
        SCOPED_TRACE(testing::Message() << "kind " << int(kind) << " heads " << heads << " dim " << dim << " window "
                                        << window);
        const sequences_data data(random, {kind, heads, kv_heads, dim}, {140, 3, 40});
        data.store(183);
        const auto wide = attend_ranges(data, all_rows(data, true), window, all_scratch);
        expect_correct(data, wide, window, 31);
        for (const std::int64_t scratch : {all_scratch, std::int64_t{0}})
          EXPECT_TRUE(same_bits(wide, attend_ranges(data, all_rows(data), window, scratch)));
        const auto mixed =
            attend_ranges(data, {{0, 0, 61}, {0, 61, 79, true}, {1, 0, 3}, {2, 0, 40, true}}, window, all_scratch);
        EXPECT_TRUE(same_bits(wide, mixed));
      }
}

/// The last rows of sequences of any length, whose other rows have been there before.
std::vector<row_range> last_rows(random_data& random, const sequences_data& data) {
  std::vector<row_range> ranges;
  for (std::size_t s = 0; s < data.lengths.size(); ++s) {
    const int rows = random.between(1, data.lengths[s]);
    ranges.push_back({static_cast<int>(s), data.lengths[s] - rows, rows, true});
  }
  return ranges;
}

TEST_F(cuda_attention, wide_tiles_of_all_devices_give_the_bits_of_others_behind_any_prefix) {
  random_data random(41);
  for (const int dim : {64, 80, 96, 128})
    for (const int window : {0, 65}) {
      SCOPED_TRACE(testing::Message() << "dim " << dim << " window " << window);
      const int group = random.between(1, 4);
      const std::vector<int> lengths{random.between(200, 330), random.between(1, 200), random.between(1, 70)};
      const sequences_data data(random, {kv_kind::f16, 2 * group, 2, dim}, lengths);
      data.store(data.rows);
      std::vector<row_range> ranges = last_rows(random, data);
      const auto wide = attend_ranges(data, ranges, window, 0);
      {
        const older_device one;
        EXPECT_TRUE(same_bits(wide, attend_ranges(data, ranges, window, 0)));
      }
      for (row_range& range : ranges) range.is_wide = false;
      EXPECT_TRUE(same_bits(wide, attend_ranges(data, ranges, window, all_scratch)));
    }
}

TEST_F(cuda_attention, equals_plain_sums_over_sections) {
  random_data random(32);
  for (const kv_kind kind : {kv_kind::f16, kv_kind::i8})
    for (const int window : {0, 530}) {
      const sequences_data data(random, {kind, 2, 1, 16}, {1100});
      data.store(1100);
      const auto got = attend_ranges(data, {{0, 1000, 100}}, window, all_scratch);
      for (int row = 0; row < 100; row += 9)
        for (int head = 0; head < 2; ++head)
          expect_near(got.data() + row * data.shape.q_stride() + head * 16,
                      expected_head(data, 1000 + row, head, window), 16, allowed_share(kind));
    }
}

TEST_F(cuda_attention, very_many_sections_are_joined_in_order) {
  random_data random(39);
  const sequences_data data(random, {kv_kind::f16, 2, 1, 16}, {2500});
  data.store(2500);
  const auto shared = attend_ranges(data, {{0, 2499, 1}}, 0, all_scratch);
  EXPECT_TRUE(same_bits(shared, attend_ranges(data, {{0, 2499, 1}}, 0, 0)));
  for (int head = 0; head < 2; ++head)
    expect_near(shared.data() + head * 16, expected_head(data, 2499, head, 0), 16, allowed_share(kv_kind::f16));
}

TEST_F(cuda_attention, a_row_is_the_same_to_the_bit_in_any_chunk_and_company_shared_out_or_not) {
  random_data random(33);
  for (const kv_kind kind : {kv_kind::f32, kv_kind::f16, kv_kind::i8})
    for (const int window : {0, 70}) {
      const sequences_data data(random, {kind, 3, 1, 24}, {7, 560, 130});
      data.store(697);
      const auto stride = data.shape.q_stride();
      const std::vector<row_range> company{{0, 0, 7}, {1, 515, 25}, {2, 120, 10}};
      const auto together = attend_ranges(data, company, window, all_scratch);
      EXPECT_TRUE(same_bits(together, attend_ranges(data, company, window, 0))) << "one warp takes all sections";
      for (int i = 0; i < 25; i += 12) {  // a row at a time, as it would be in decode
        const auto alone = attend_ranges(data, {{1, 515 + i, 1}}, window, i % 24 ? 0 : all_scratch);
        ASSERT_EQ(std::memcmp(alone.data(), together.data() + (7 + i) * stride, 3 * 24 * sizeof(float)), 0)
            << "kind " << int(kind) << " window " << window << " row " << i;
      }
      const auto halves = attend_ranges(data, {{1, 530, 10}, {1, 515, 15}}, window, all_scratch);
      ASSERT_EQ(std::memcmp(halves.data() + 10 * stride, together.data() + 7 * stride, 3 * 24 * sizeof(float)), 0);
    }
}

/// Floats of working memory that one tile's sections take.
std::int64_t scratch_of_a_tile(const sequences_data& data, int positions) {
  return (positions + section_positions - 1) / section_positions * data.shape.kv_heads * tile_queries *
         (rounded_up(data.shape.dim, 16) + 16);
}

TEST_F(cuda_attention, tiles_are_shared_out_some_at_a_time_where_memory_holds_no_more) {
  random_data random(36);
  const sequences_data data(random, {kv_kind::f16, 8, 1, 16}, {300, 290, 40});
  data.store(630);
  const std::vector<row_range> ranges{{0, 294, 6}, {1, 285, 5}, {2, 39, 1}};
  const auto at_once = attend_ranges(data, ranges, 0, all_scratch);
  for (const std::int64_t tiles : {1, 2, 3})
    EXPECT_TRUE(same_bits(at_once, attend_ranges(data, ranges, 0, tiles * scratch_of_a_tile(data, 300)))) << tiles;
}

TEST_F(cuda_attention, many_heads_are_shared_out_as_well) {
  random_data random(37);
  const sequences_data data(random, {kv_kind::f16, 32, 32, 8}, {200});
  data.store(200);
  EXPECT_GE(attention_scratch_floats(data.layer(), 4096), scratch_of_a_tile(data, 4096));
  const std::int64_t floats = attention_scratch_floats(data.layer(), 200);
  EXPECT_GE(floats, scratch_of_a_tile(data, 200));
  const std::vector<float> untouched(static_cast<std::size_t>(floats), -7.0f);
  const device_array<float> scratch(untouched);
  const auto shared = attend_ranges(data, {{0, 199, 1}}, 0, floats, scratch.data());
  EXPECT_FALSE(same_bits(scratch.read(), untouched)) << "no section was put there";
  EXPECT_TRUE(same_bits(shared, attend_ranges(data, {{0, 199, 1}}, 0, 0)));
}

TEST_F(cuda_attention, the_order_of_threads_changes_nothing) {
  random_data random(34);
  for (const kv_kind kind : {kv_kind::f32, kv_kind::f16, kv_kind::i8}) {
    const sequences_data data(random, {kind, 4, 2, 16}, {5, 530});
    data.store(535);
    const auto attend_tiles = [&](bool is_wide, std::int64_t scratch) {
      return in_every_order([&] {
        return attend_ranges(data, {{0, 0, 5, is_wide}, {1, 520, 10, is_wide}}, 0, scratch);
      });
    };
    const auto shared = attend_tiles(false, all_scratch);
    EXPECT_TRUE(same_bits(shared, attend_tiles(false, 0)));
    EXPECT_TRUE(same_bits(shared, attend_tiles(true, 0)));
    const older_device one;
    EXPECT_TRUE(same_bits(shared, attend_tiles(true, 0)));
  }
}

TEST_F(cuda_attention, what_a_row_does_not_see_does_not_touch_it_be_it_infinite) {
  random_data random(35);
  for (const kv_kind kind : {kv_kind::f32, kv_kind::f16, kv_kind::i8}) {
    const sequences_data data(random, {kind, 2, 1, 16}, {21, 40});
    data.store(61);
    const auto before = attend_ranges(data, {{1, 20, 1}}, 0, all_scratch);
    EXPECT_FALSE(std::any_of(before.begin(), before.begin() + 32, [](float x) { return std::isnan(x); }));
    const auto behind = (data.first_rows[1] + 21) * data.shape.kv_stride();
    const std::vector<float> infinite(static_cast<std::size_t>(19 * data.shape.kv_stride()), INFINITY);
    const stream on;
    copy(data.k_.data() + behind, infinite.data(), infinite.size(), on);
    copy(data.v_.data() + behind, infinite.data(), infinite.size(), on);
    on.wait();
    data.store(61);
    const auto after = attend_ranges(data, {{1, 20, 1}}, 0, all_scratch);
    EXPECT_EQ(std::memcmp(after.data(), before.data(), 32 * sizeof(float)), 0) << "kind " << int(kind);
  }
}

}  // namespace
}  // namespace troupe::cuda
