// Adapters of different ranks over ragged rows against plain sums, and promise 1.
#include "tests/model/ops/cuda/on_device.hpp"
#include "tests/model/ops/random_factor.hpp"

namespace troupe::cuda {
namespace {

using cuda_lora = device_test;

struct factor {
  random_factor here;
  device_array<std::byte> memory;

  factor(random_data& random, factor_kind kind, std::int64_t outs, std::int64_t ins, std::int64_t stored_ins)
      : here(random, kind, outs, ins, stored_ins), memory(here.memory) {}
};

/// Three adapters for two layers that share an input; the last has no factors for the second layer.
struct adapters_data {
  static constexpr int linears = 2;
  std::int64_t ins, outs[linears];
  int ranks[3] = {5, 16, 40}, rows = 22;
  std::vector<factor> a, b;  // [adapter, linear]
  std::vector<device_array<float>> scales;
  std::vector<float> x;
  device_array<float> x_;
  std::vector<lora_factors> table;

  explicit adapters_data(random_data& random, std::int64_t ins_ = 77, std::int64_t most_outs = 150)
      : ins(ins_), outs{33, most_outs}, x(random_rows(random, rows, ins, padded_row(ins))), x_(x) {
    for (int adapter = 0; adapter < 3; ++adapter)
      for (int l = 0; l < linears; ++l) {
        const int rank = ranks[adapter];
        a.emplace_back(random, every_factor_kind[adapter], rank, ins, rounded_up(ins, 4));
        b.emplace_back(random, every_factor_kind[(adapter + l) % 3], outs[l], rank, rank);
        std::vector<float> of_ranks;
        for (int r = 0; r < rank; ++r) of_ranks.push_back(scale_of(r) * a.back().here.scale * b.back().here.scale);
        scales.emplace_back(of_ranks);
        lora_factors f{a.back().memory.data(),  b.back().memory.data(),  scales.back().data(),   rank,
                       int(rounded_up(ins, 4)), a.back().here.view.kind, b.back().here.view.kind};
        if (adapter == 2 && l == 1) f = {};
        table.push_back(f);
      }
  }
  static float scale_of(std::int64_t rank) { return rank % 3 == 0 ? 0.5f : 0.25f; }
  bool has(int adapter, int l) const { return adapter != 2 || l != 1; }

  double expected(int row, int adapter, int l, int out) const {
    const factor &down = a[std::size_t(adapter * linears + l)], &up = b[std::size_t(adapter * linears + l)];
    double sum = 0;
    for (std::int64_t r = 0; r < down.here.view.outs && has(adapter, l); ++r) {
      double between = 0;
      for (std::int64_t i = 0; i < ins; ++i)
        between += double(down.here.values[std::size_t(r * ins + i)]) * x[std::size_t(row * padded_row(ins) + i)];
      sum += scale_of(r) * between * up.here.values[std::size_t(out * up.here.view.ins + r)];
    }
    return sum;
  }

  /// y of both layers, which was 1 everywhere.
  std::vector<float> run(const std::vector<lora_tile>& tiles, int most_tile_rows = lora_tile_rows) const {
    std::vector<device_array<float>> y;
    for (const std::int64_t n : outs) y.emplace_back(std::vector<float>(std::size_t(rows * padded_row(n)), 1.0f));
    const device_array<lora_tile> tiles_(tiles);
    const device_array<lora_factors> table_(table);
    const device_array<float> between(std::size_t(lora_between_floats(rows, 40)));
    lora_args args{.tiles = tiles_.data(),
                   .tile_count = static_cast<int>(tiles.size()),
                   .most_tile_rows = most_tile_rows,
                   .table = table_.data(),
                   .table_stride = linears,
                   .most_rank = 40,
                   .x = {x_.data(), padded_row(ins)},
                   .ins = ins,
                   .target_count = linears};
    for (std::size_t l = 0; l < linears; ++l)
      args.targets[l] = {static_cast<std::int64_t>(l), outs[l], {y[l].data(), padded_row(outs[l])}};
    args.between = between.data();
    const stream on;
    lora(on, args);
    on.wait();
    auto all = y[0].read();
    const auto second = y[1].read();
    all.insert(all.end(), second.begin(), second.end());
    return all;
  }
};

class cuda_lora_shapes : public device_test, public testing::WithParamInterface<std::array<std::int64_t, 2>> {};

TEST_P(cuda_lora_shapes, adds_each_rows_own_adapter_and_leaves_other_rows_alone) {
  random_data random(41);
  const adapters_data data(random, GetParam()[0], GetParam()[1]);
  // rows 11 and 12 have no adapter
  const auto y = in_every_order([&] {
    return data.run({{0, 8, 0}, {8, 3, 0}, {13, 1, 1}, {14, 6, 2}, {20, 2, 1}, {}});
  });
  const auto adapter_of = [](int row) { return row < 11 ? 0 : row < 13 ? -1 : row == 13 || row >= 20 ? 1 : 2; };
  std::size_t first = 0;
  for (int l = 0; l < 2; ++l) {
    for (int row = 0; row < data.rows; ++row)
      for (int out = 0; out < data.outs[l]; ++out) {
        const double added = adapter_of(row) < 0 ? 0 : data.expected(row, adapter_of(row), l, out);
        const float got = y[first + std::size_t(row * padded_row(data.outs[l]) + out)];
        ASSERT_NEAR(got, 1 + added, added == 0 ? 0 : 1e-3) << "layer " << l << " row " << row << " out " << out;
      }
    first += std::size_t(data.rows * padded_row(data.outs[l]));
  }
}

// The second is wide enough to be summed in parts, and has more outputs than a block of threads makes.
INSTANTIATE_TEST_SUITE_P(all, cuda_lora_shapes,
                         testing::Values(std::array<std::int64_t, 2>{77, 150},
                                         std::array<std::int64_t, 2>{1100, 1030}));

TEST_F(cuda_lora, tiles_may_be_cut_anywhere) {
  random_data random(42);
  for (const std::int64_t ins : {77, 1100}) {
    const adapters_data data(random, ins);
    const auto whole = data.run({{0, 8, 2}, {8, 8, 2}, {16, 6, 1}});
    EXPECT_TRUE(same_bits(whole, data.run({{16, 1, 1}, {17, 5, 1}, {0, 3, 2}, {3, 7, 2}, {10, 6, 2}}))) << ins;
    const auto small = in_every_order([&] {
      return data.run({{16, 4, 1}, {20, 2, 1}, {0, 1, 2}, {1, 3, 2}, {4, 4, 2}, {8, 4, 2}, {12, 4, 2}, {}},
                      small_lora_tile_rows);
    });
    EXPECT_TRUE(same_bits(whole, small)) << ins;
  }
}

}  // namespace
}  // namespace troupe::cuda
