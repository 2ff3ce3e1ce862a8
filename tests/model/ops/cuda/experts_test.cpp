// Mixtures of experts: who goes where against a plain reference, and products of visits against those of rows alone.
#include "model/ops/cuda/experts.hpp"

#include <array>
#include <cmath>
#include <numeric>
#include <set>

#include "tests/model/ops/cuda/on_device.hpp"

namespace troupe::cuda {
namespace {

using cuda_experts = device_test;

constexpr std::int32_t nowhere = -1;

/// Routes of random scores, with equal ones among them.
struct random_routes {
  int rows, experts, taken;
  bool whole;
  std::int64_t stride;
  std::vector<float> scores;
  std::vector<std::int32_t> positions;
  visit_memory memory;
  visit_tables tables;

  random_routes(random_data& random, int r, int e, int t, bool w = true)
      : rows(r), experts(e), taken(t), whole(w), stride(padded_outs(e)), memory(r, e, t), tables(memory.tables(r)) {
    scores = random_rows(random, rows, experts, stride);
    for (float& score : scores) score = std::round(score * 4) / 4;
    for (int row = 0; row < rows; ++row) positions.push_back(row % 7 == 5 ? nowhere : row);
  }

  void choose(const stream& on) const {
    const device_array<float> on_device(scores);
    const device_array<std::int32_t> where(positions);
    choose_experts(on, {tables, {on_device.data(), stride}, where.data(), whole});
    on.wait();
  }

  /// Of a row, in their order.
  std::vector<std::int32_t> expected_experts(int row) const {
    if (positions[std::size_t(row)] < 0) return std::vector<std::int32_t>(std::size_t(taken), nowhere);
    const float* of = scores.data() + row * stride;
    std::vector<std::int32_t> order(static_cast<std::size_t>(experts));
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return of[a] > of[b]; });
    order.resize(static_cast<std::size_t>(taken));
    std::sort(order.begin(), order.end());
    return order;
  }
  double expected_share(int row, int expert) const {
    double total = 0;
    const auto chosen = expected_experts(row);
    for (int e = 0; e < experts; ++e)
      if (!whole || std::count(chosen.begin(), chosen.end(), e))
        total += std::exp(double(scores[std::size_t(row * stride + e)]));
    return std::exp(double(scores[std::size_t(row * stride + expert)])) / total;
  }
};

template <class T>
std::vector<T> read(const T* from, int count) {
  std::vector<T> all(static_cast<std::size_t>(count));
  const stream on;
  copy(all.data(), from, all.size(), on);
  on.wait();
  return all;
}

struct read_tables {
  std::vector<std::int32_t> experts, places, row_at;
  std::vector<float> shares;
  std::vector<visit_tile> tiles;

  explicit read_tables(const visit_tables& v)
      : experts(read(v.experts, v.bounds.visits())),
        places(read(v.places, v.bounds.visits())),
        row_at(read(v.row_at, v.bounds.places())),
        shares(read(v.shares, v.bounds.visits())),
        tiles(read(v.tiles, v.bounds.tiles())) {}
};

void expect_visits_of_rows(const random_routes& routes, const read_tables& got) {
  for (int row = 0; row < routes.rows; ++row) {
    const auto first = got.experts.begin() + row * routes.taken;
    const auto expected = routes.expected_experts(row);
    ASSERT_EQ(std::vector(first, first + routes.taken), expected) << "row " << row;
    for (int i = 0; i < routes.taken && expected.front() != nowhere; ++i)
      ASSERT_NEAR(got.shares[std::size_t(row * routes.taken + i)], routes.expected_share(row, expected[std::size_t(i)]),
                  1e-5);
  }
}

/// Every visit has a place of its own, in a tile of its expert; tiles are in order and what is left is empty.
void expect_places(const random_routes& routes, const read_tables& got) {
  std::size_t used = 0;
  std::vector<std::int32_t> expert_at(got.row_at.size(), nowhere);
  for (; used < got.tiles.size() && got.tiles[used].rows > 0; ++used) {
    const visit_tile& tile = got.tiles[used];
    ASSERT_LE(tile.rows, routes.tables.bounds.tile_rows);
    ASSERT_TRUE(used == 0 || tile.expert >= got.tiles[used - 1].expert);
    for (int i = 0; i < tile.rows; ++i)
      expert_at[used * std::size_t(routes.tables.bounds.tile_rows) + std::size_t(i)] = tile.expert;
  }
  for (; used < got.tiles.size(); ++used) ASSERT_EQ(got.tiles[used].rows, 0);
  std::set<std::int32_t> taken;
  for (std::size_t visit = 0; visit < got.places.size(); ++visit) {
    const std::int32_t place = got.places[visit];
    ASSERT_EQ(place < 0, got.experts[visit] < 0);
    if (place < 0) continue;
    ASSERT_TRUE(taken.insert(place).second);
    ASSERT_EQ(got.row_at[std::size_t(place)], int(visit) / routes.taken);
    ASSERT_EQ(expert_at[std::size_t(place)], got.experts[visit]);
  }
  for (std::size_t place = 0; place < got.row_at.size(); ++place)
    ASSERT_EQ(got.row_at[place] >= 0, taken.contains(int(place))) << "place " << place;
}

void expect_chosen(const random_routes& routes) {
  const stream on;
  routes.choose(on);
  const read_tables got(routes.tables);
  expect_visits_of_rows(routes, got);
  expect_places(routes, got);
}

TEST_F(cuda_experts, are_chosen_as_a_plain_reference_chooses_them) {
  random_data random(31);
  for (int round = 0; round < 24; ++round) {
    const int experts = round == 0 ? 1024 : random.between(1, round % 3 == 0 ? 300 : 20);
    const int taken = random.between(1, std::min(experts, 9));
    const random_routes routes(random, random.between(1, round % 2 ? 200 : 20), experts, taken, round % 4 < 2);
    SCOPED_TRACE(testing::Message() << routes.rows << " rows, " << taken << " of " << experts);
    expect_chosen(routes);
  }
}

TEST_F(cuda_experts, of_more_than_a_thousand_rows_are_laid_out_as_well) {
  random_data random(32);
  const random_routes routes(random, 1100, 8, 2);
  EXPECT_EQ(routes.tables.bounds.tile_rows, most_visit_rows);
  expect_chosen(routes);
}

TEST_F(cuda_experts, are_some_even_if_no_score_is_a_number) {
  random_data random(33);
  random_routes routes(random, 3, 6, 2);
  std::fill(routes.scores.begin(), routes.scores.end(), std::numeric_limits<float>::quiet_NaN());
  routes.scores[std::size_t(routes.stride + 4)] = -3;
  const stream on;
  routes.choose(on);
  const read_tables got(routes.tables);
  EXPECT_EQ(got.experts, (std::vector<std::int32_t>{0, 1, 0, 4, 0, 1}));
  expect_places(routes, got);
}

TEST_F(cuda_experts, have_enough_memory_for_any_number_of_rows) {
  for (const auto& [experts, taken] : {std::pair{128, 8}, {8, 2}, {60, 4}}) {
    const int most = visit_memory::most_places(300, experts, taken);
    for (int rows = 1; rows <= 300; ++rows) {
      const visit_bounds bounds{rows, experts, taken, visit_tile_rows(rows, experts, taken)};
      ASSERT_LE(bounds.places(), most);
    }
  }
}

/// The matrices of some experts, one behind the other.
struct expert_matrices {
  std::vector<random_matrix> host;
  std::vector<device_matrix> alone;
  device_array<std::byte> memory;
  matrix_view first;

  expert_matrices(random_data& random, scheme kind, int experts, std::int64_t outs, std::int64_t ins)
      : memory(std::size_t(experts) * packed_bytes(kind, outs, ins).total()) {
    const matrix_bytes bytes = part_bytes(kind, outs, ins);
    first = view_of(kind, outs, ins, memory.data());
    first.scales = bytes.scales ? memory.data() + std::size_t(experts) * bytes.weights : nullptr;
    first.mids = bytes.mids ? memory.data() + std::size_t(experts) * (bytes.weights + bytes.scales) : nullptr;
    const stream on;
    const auto put = [&](const std::byte* to, const std::byte* from, std::size_t count, std::size_t expert) {
      if (count > 0) copy(const_cast<std::byte*>(to) + expert * count, from, count, on);
    };
    for (std::size_t expert = 0; expert < std::size_t(experts); ++expert) {
      const matrix_view& own = host.emplace_back(random, kind, outs, ins).view;
      put(first.weights, own.weights, bytes.weights, expert);
      put(first.scales, own.scales, bytes.scales, expert);
      put(first.mids, own.mids, bytes.mids, expert);
      on.wait();
      alone.emplace_back(host.back());
    }
  }
};

/// Rows through two products of their experts, and the same products of every row alone.
class visiting_rows {
 public:
  visiting_rows(random_data& random, const random_routes& routes, scheme kind, scheme other, std::int64_t ins,
                std::int64_t outs, std::int64_t other_outs)
      : routes_(routes),
        ins_(ins),
        matrices_{expert_matrices(random, kind, routes.experts, outs, ins),
                  expert_matrices(random, other, routes.experts, other_outs, ins)},
        x_(random_rows(random, routes.rows, ins, padded_row(ins))),
        codes_(routes.rows, ins) {
    const stream on;
    routes.choose(on);
    encode(on, rows(), routes.rows, ins, codes_.view(true, true));
    on.wait();
  }

  float_rows rows() const { return {x_.data(), padded_row(ins_)}; }

  /// Of product i: [places, padded outs].
  std::vector<std::vector<float>> of_visits(bool gathered) const {
    const visit_tables& v = routes_.tables;
    const stream on;
    const coded_rows at_places(v.bounds.places(), ins_);
    const device_array<float> x_at_places(std::size_t(v.bounds.places() * padded_row(ins_)));
    const float_rows to{x_at_places.data(), padded_row(ins_)};
    if (gathered) gather_visits(on, {v, ins_, rows(), codes_.view(true, true), to, at_places.view(true, true)});
    std::vector<device_array<float>> y;
    std::vector<product> products;
    for (const expert_matrices& each : matrices_) {
      const std::int64_t stride = padded_row(each.first.outs);
      y.emplace_back(std::size_t(v.bounds.places() * stride));
      products.push_back({each.first, {y.back().data(), stride}});
    }
    if (gathered)
      matmul_experts(on, products, {v, to, at_places.view(true, true), nullptr});
    else
      matmul_experts(on, products, {v, rows(), codes_.view(true, true), v.row_at});
    on.wait();
    std::vector<std::vector<float>> all;
    for (const auto& each : y) all.push_back(each.read());
    return all;
  }

  void expect_products_of_rows_alone(bool gathered) const {
    const auto got = of_visits(gathered);
    const read_tables tables(routes_.tables);
    for (std::size_t p = 0; p < got.size(); ++p) {
      const expert_matrices& matrices = matrices_[p];
      const std::int64_t stride = padded_row(matrices.first.outs);
      std::vector<std::vector<float>> of_expert;
      for (const device_matrix& matrix : matrices.alone) of_expert.push_back(of_all_rows(matrix));
      for (std::size_t place = 0; place < tables.row_at.size(); ++place) {
        if (tables.row_at[place] < 0) continue;
        const auto expert = std::size_t(tables.tiles[place / std::size_t(routes_.tables.bounds.tile_rows)].expert);
        const float* expected = of_expert[expert].data() + tables.row_at[place] * stride;
        ASSERT_EQ(
            std::memcmp(got[p].data() + std::int64_t(place) * stride, expected, std::size_t(matrices.first.outs) * 4),
            0)
            << "product " << p << " at place " << place;
      }
    }
  }

 private:
  std::vector<float> of_all_rows(const device_matrix& matrix) const {
    const std::int64_t stride = padded_row(matrix.view.outs);
    const device_array<float> y(std::size_t(routes_.rows * stride));
    const product only{matrix.view, {y.data(), stride}};
    const stream on;
    matmul(on, std::span(&only, 1), {routes_.rows, rows(), codes_.view(true, true)});
    on.wait();
    return y.read();
  }

  const random_routes& routes_;
  std::int64_t ins_;
  std::array<expert_matrices, 2> matrices_;
  device_array<float> x_;
  coded_rows codes_;
};

/// Rows, experts and experts taken, for each size of tiles.
constexpr std::array<std::array<int, 3>, 5> shapes = {{{5, 6, 2}, {24, 7, 3}, {40, 5, 2}, {80, 5, 3}, {140, 3, 2}}};

TEST_F(cuda_experts, make_of_every_row_what_they_make_of_it_alone) {
  random_data random(34);
  std::set<int> tile_rows;
  for (const scheme kind : all_schemes)
    for (const auto& [rows, experts, taken] : shapes) {
      const random_routes routes(random, rows, experts, taken);
      const scheme other = rows % 4 == 0 ? scheme::bf16 : kind;
      const visiting_rows visiting(random, routes, kind, other, random.between(1, 400), random.between(1, 180),
                                   random.between(1, 160));
      SCOPED_TRACE(testing::Message() << name_of(kind) << ", tiles of " << routes.tables.bounds.tile_rows);
      tile_rows.insert(routes.tables.bounds.tile_rows);
      visiting.expect_products_of_rows_alone(true);
      if (routes.tables.bounds.tile_rows == few_visit_rows) visiting.expect_products_of_rows_alone(false);
      const older_device one;
      visiting.expect_products_of_rows_alone(true);
    }
  EXPECT_EQ(tile_rows.size(), shapes.size());
}

TEST_F(cuda_experts, give_the_same_whichever_threads_come_first) {
  random_data random(35);
  for (const scheme kind : {scheme::u8, scheme::bf16, scheme::u4g32, scheme::f32})
    for (const auto& [rows, experts, taken] : shapes) {
      const random_routes routes(random, rows, experts, taken);
      const visiting_rows visiting(random, routes, kind, kind, 300, 150, 40);
      in_every_order([&] {
        const stream on;
        routes.choose(on);
        const read_tables tables(routes.tables);
        std::vector<float> visited;
        for (const auto& made : visiting.of_visits(true)) {
          const auto stride = made.size() / tables.row_at.size();
          for (std::size_t place = 0; place < tables.row_at.size(); ++place)
            for (std::size_t i = 0; i < 40; ++i)
              visited.push_back(tables.row_at[place] < 0 ? 0 : made[place * stride + i]);
        }
        for (const auto* numbers : {&tables.experts, &tables.places, &tables.row_at})
          for (const std::int32_t number : *numbers) visited.push_back(static_cast<float>(number));
        return visited;
      });
    }
}

TEST_F(cuda_experts, give_a_row_their_shares_in_their_order) {
  random_data random(36);
  for (const int n : {30, 700}) {
    const random_routes routes(random, 60, 9, 4, false);
    const stream on;
    routes.choose(on);
    const read_tables tables(routes.tables);
    const std::int64_t stride = padded_row(n);
    const auto made = random_rows(random, routes.tables.bounds.places(), n, stride),
               hidden = random_rows(random, routes.rows, n, stride);
    const device_array<float> made_on_device(made), sums(hidden);
    add_visits(on, {routes.tables, n, {made_on_device.data(), stride}, {sums.data(), stride}});
    on.wait();
    const auto got = sums.read();
    for (int row = 0; row < routes.rows; ++row)
      for (int i = 0; i < n; ++i) {
        float expected = hidden[std::size_t(row * stride + i)];
        for (int visit = row * routes.taken; visit < (row + 1) * routes.taken; ++visit)
          if (const std::int32_t place = tables.places[std::size_t(visit)]; place >= 0) {
            const float part = tables.shares[std::size_t(visit)] * made[std::size_t(place * stride + i)];
            expected = expected + part;
          }
        ASSERT_EQ(got[std::size_t(row * stride + i)], expected) << "row " << row;
      }
  }
}

}  // namespace
}  // namespace troupe::cuda
