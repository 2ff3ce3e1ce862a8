// An adapter's products: every kind of factors, ragged shapes, and promise 1.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "base/to_size.hpp"
#include "tests/model/ops/random_factor.hpp"
#include "tests/model/ops/tested_tables.hpp"

namespace troupe {
namespace {

struct adapter_case {
  factor_kind kind;
  int rows;
  std::int64_t rank, outs, ins;

  static adapter_case any(random_data& random) {
    return {every_factor_kind[random.between(0, 2)], random.between(1, 21), random.between(1, 40),
            random.between(1, 150), random.between(1, 200)};
  }
  std::int64_t x_stride() const { return padded_row(ins); }
  std::int64_t y_stride() const { return padded_row(outs); }
  std::int64_t between_stride() const { return padded_outs(rank) + 16; }
};

struct case_data {
  random_factor a, b;
  aligned_buffer<float> x, before, scales;

  case_data(random_data& random, const adapter_case& c)
      : a(random, c.kind, c.rank, c.ins, rounded_up(c.ins, 4)),
        b(random, c.kind, c.outs, c.rank, c.rank),
        x(random.rows(c.rows, c.ins, c.x_stride())),
        before(random.rows(c.rows, c.outs, c.y_stride())),
        scales(to_size(padded_outs(c.rank))) {
    for (std::int64_t r = 0; r < c.rank; ++r) scales[to_size(r)] = scale_of(r) * a.scale * b.scale;
  }
  static float scale_of(std::int64_t rank) { return rank % 3 == 0 ? 0.5f : 0.25f; }

  low_rank_args args(const adapter_case& c, int first, int rows, float* between, float* y) const {
    return {.a = a.view,
            .b = b.view,
            .scales = scales.data(),
            .rows = rows,
            .x = x.data() + first * c.x_stride(),
            .x_stride = c.x_stride(),
            .between = between,
            .between_stride = c.between_stride(),
            .y = y,
            .y_stride = c.y_stride()};
  }
};

/// Rows [first, first + rows) of y.
std::vector<float> add_adapter(const kernel_table& table, const adapter_case& c, const case_data& data, int first,
                               int rows) {
  std::vector<float> between(to_size(rows * c.between_stride()));
  const float* from = data.before.data() + first * c.y_stride();
  std::vector<float> y(from, from + rows * c.y_stride());
  const low_rank_args args = data.args(c, first, rows, between.data(), y.data());
  table.shrink(args);
  table.expand(args, 0, args.b.blocks());
  return y;
}

double reference(const adapter_case& c, const case_data& data, int row, std::int64_t out) {
  double y = 0;
  for (std::int64_t r = 0; r < c.rank; ++r) {
    double t = 0;
    for (std::int64_t in = 0; in < c.ins; ++in)
      t += double(data.a.values[to_size(r * c.ins + in)]) * data.x.data()[row * c.x_stride() + in];
    y += t * data.scale_of(r) * data.b.values[to_size(out * c.rank + r)];
  }
  return data.before.data()[row * c.y_stride() + out] + y;
}

TEST(low_rank, equals_the_reference_and_itself_on_every_instruction_set) {
  random_data random(41);
  for (int round = 0; round < 60; ++round) {
    const auto c = adapter_case::any(random);
    const case_data data(random, c);
    const auto generic = add_adapter(*kernels_of("generic"), c, data, 0, c.rows);
    const double size = std::sqrt(double(c.ins * c.rank));
    for (int row = 0; row < c.rows; ++row)
      for (std::int64_t out = 0; out < c.outs; ++out)
        ASSERT_NEAR(generic[to_size(row * c.y_stride() + out)], reference(c, data, row, out), 1e-5 * size)
            << "rows " << c.rows << " rank " << c.rank << " outs " << c.outs << " ins " << c.ins;
    for (const kernel_table* table : tested_tables())
      ASSERT_EQ(add_adapter(*table, c, data, 0, c.rows), generic) << table->isa;
  }
}

TEST(low_rank, gives_a_row_the_same_bits_alone_and_among_others) {
  random_data random(42);
  for (const factor_kind kind : every_factor_kind) {
    const adapter_case c{kind, 19, 16, 100, 130};
    const case_data data(random, c);
    const auto together = add_adapter(kernels(), c, data, 0, c.rows);
    for (int row = 0; row < c.rows; ++row) {
      const auto alone = add_adapter(kernels(), c, data, row, 1);
      ASSERT_TRUE(std::equal(alone.begin(), alone.end(), together.begin() + row * c.y_stride())) << "row " << row;
    }
  }
}

/// Several jobs of one call, each with adapters for some of its rows.
TEST(low_rank, is_added_to_the_jobs_it_belongs_to_whatever_the_number_of_threads) {
  random_data random(43);
  constexpr int rows = 20, jobs = 2;
  const adapter_case c{factor_kind::f16, rows, 16, 700, 96};
  const random_matrix matrices[jobs] = {{random, scheme::f32, c.outs, c.ins}, {random, scheme::f32, c.outs, c.ins}};
  const case_data data[jobs] = {{random, c}, {random, c}};
  const auto run = [&](int threads, bool together) {
    thread_pool pool(threads);
    const compute with{pool, kernels()};
    std::vector<std::vector<float>> y(jobs, std::vector<float>(to_size(rows * c.y_stride())));
    std::vector<float> between(to_size(rows * jobs * 2 * c.between_stride()));
    std::vector<matmul_args> products(jobs);
    std::vector<adapted_job> adapters;
    for (std::size_t job = 0; job < jobs; ++job) {
      products[job].w = matrices[job].view;
      products[job].rows = rows;
      products[job].x = data[0].x.data();
      products[job].x_stride = c.x_stride();
      products[job].y = y[job].data();
      products[job].y_stride = c.y_stride();
      // rows 2 to 12 have the first adapter, 14 to the last the second
      for (const auto& [which, first, last] : {std::tuple(0, 2, 13), std::tuple(1, 14, rows)}) {
        auto args =
            data[which].args(c, first, last - first,
                             between.data() + static_cast<std::int64_t>(adapters.size()) * rows * c.between_stride(),
                             y[job].data() + first * c.y_stride());
        args.x = data[0].x.data() + first * c.x_stride();
        adapters.push_back({job, args});
      }
    }
    matmul(with, products, together ? std::span<const adapted_job>(adapters) : std::span<const adapted_job>());
    if (!together)
      for (const auto& adapted : adapters) {
        with.kernels.shrink(adapted.adapter);
        with.kernels.expand(adapted.adapter, 0, adapted.adapter.b.blocks());
      }
    return y;
  };
  const auto expected = run(1, false);
  for (const int threads : {1, 2, 5}) EXPECT_EQ(run(threads, true), expected) << threads << " threads";
}

}  // namespace
}  // namespace troupe
