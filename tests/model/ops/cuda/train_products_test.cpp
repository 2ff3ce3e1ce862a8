// Products of training against plain sums.
#include "model/ops/cuda/train_ops.hpp"
#include "tests/model/ops/cuda/on_device.hpp"
#include "tests/model/rounded.hpp"

namespace troupe::cuda {
namespace {

using cuda_train_products = device_test;

/// Rows times a matrix, or turned.
struct weight_case {
  random_matrix host;
  device_matrix there;
  bool turned;
  int rows;
  std::int64_t ins, outs, x_stride, y_stride;  // of the product
  std::vector<float> x, y, bias;
  device_array<float> x_there, bias_there;

  weight_case(random_data& random, scheme kind, bool turned_, int rows_, std::int64_t w_outs, std::int64_t w_ins)
      : host(random, kind, w_outs, w_ins),
        there(host),
        turned(turned_),
        rows(rows_),
        ins(turned ? w_outs : w_ins),
        outs(turned ? w_ins : w_outs),
        x_stride(padded_row(ins)),
        y_stride(padded_row(outs)),
        x(random_rows(random, rows, ins, x_stride)),
        y(random_rows(random, rows, outs, y_stride)),
        bias(random_rows(random, 1, outs, padded_outs(outs))),
        x_there(x),
        bias_there(bias) {}

  /// y + x W^T + bias, of numbers that `round` has rounded.
  template <class Round>
  std::vector<double> expected(Round round) const {
    std::vector<float> weights(static_cast<std::size_t>(there.view.outs * padded_row(there.view.ins)));
    const std::int64_t stride = padded_row(there.view.ins);
    for (std::int64_t out = 0; out < there.view.outs; ++out) unpack_row(host.view, out, weights.data() + out * stride);
    std::vector<double> all;
    for (int row = 0; row < rows; ++row)
      for (std::int64_t out = 0; out < outs; ++out) {
        double sum = double(y[std::size_t(row * y_stride + out)]) + bias[std::size_t(out)];
        for (std::int64_t i = 0; i < ins; ++i)
          sum += double(round(x[std::size_t(row * x_stride + i)])) *
                 round(weights[std::size_t(turned ? i * stride + out : out * stride + i)]);
        all.push_back(sum);
      }
    return all;
  }

  /// terms 0: exact. Whatever is behind a row's numbers stays.
  std::vector<float> made(int terms) const {
    const device_array<float> y_there(y);
    const stream on;
    const weight_product args{.w = there.view,
                              .turned = turned,
                              .rows = rows,
                              .x = {x_there.data(), x_stride},
                              .y = {y_there.data(), y_stride},
                              .bias = bias_there.data(),
                              .how = into::add};
    if (terms == 0)
      multiply_exact(on, args);
    else
      multiply_rounded(on, args, terms);
    on.wait();
    const auto all = y_there.read();
    std::vector<float> got;
    for (int row = 0; row < rows; ++row) {
      const auto at = all.begin() + row * y_stride;
      got.insert(got.end(), at, at + outs);
      for (std::int64_t i = outs; i < y_stride; ++i) EXPECT_TRUE(std::isnan(at[i]));
    }
    return got;
  }
};

TEST_F(cuda_train_products, of_packed_weights_are_exact_in_every_scheme_both_ways) {
  random_data random(51);
  for (const scheme kind : all_schemes)
    for (const bool turned : {false, true}) {
      const weight_case c(random, kind, turned, 5, 37, 70);
      const auto expected = c.expected([](float x) { return x; });
      expect_near(in_every_order([&] { return c.made(0); }), expected, expected.size(), 1e-6);
    }
}

TEST_F(cuda_train_products, of_packed_weights_are_rounded_to_one_bf16_or_two) {
  random_data random(52);
  for (const scheme kind : {scheme::bf16, scheme::u8, scheme::u8g64, scheme::q8, scheme::q4, scheme::u4g32})
    for (const bool turned : {false, true}) {
      const weight_case c(random, kind, turned, 3, 37, 70);
      const auto exact = c.expected([](float x) { return x; }), rounded = c.expected(as_bf16);
      // tensor cores cut off the last bits of their sums where a processor rounds
      expect_near(in_every_order([&] { return c.made(1); }), rounded, rounded.size(), 1e-5);
      expect_near(in_every_order([&] { return c.made(2); }), exact, exact.size(), 3e-5);
    }
}

TEST_F(cuda_train_products, of_packed_weights_go_over_many_tiles) {
  random_data random(53);
  for (const bool turned : {false, true}) {
    const weight_case c(random, scheme::u8g64, turned, 131, 150, 140);
    const auto expected = c.expected([](float x) { return x; });
    expect_near(c.made(0), expected, expected.size(), 1e-6);
    expect_near(c.made(2), expected, expected.size(), 3e-5);
  }
}

/// A factor that lies as [rows, columns], or turned over.
struct float_case {
  bool turned;
  std::int64_t stride;
  std::vector<float> values;
  device_array<float> there;

  float_case(random_data& random, bool turned_, std::int64_t rows, std::int64_t columns)
      : turned(turned_),
        stride(padded_row(turned ? rows : columns)),
        values(random_rows(random, static_cast<int>(turned ? columns : rows), turned ? rows : columns, stride)),
        there(values) {}
  float_factor view() const { return {there.data(), stride, turned}; }
  double at(std::int64_t row, std::int64_t column) const {
    return values[std::size_t(turned ? column * stride + row : row * stride + column)];
  }
};

void expect_float_product(random_data& random, std::int64_t rows, std::int64_t columns, std::int64_t depth, int turns) {
  const float_case a(random, turns % 2 == 1, rows, depth), b(random, turns / 2 == 1, depth, columns);
  const std::int64_t stride = padded_row(columns);
  const auto before = random_rows(random, static_cast<int>(rows), columns, stride);
  const device_array<float> scratch(product_scratch_floats);
  const into how = turns != 0 ? into::add : into::set;
  const auto got = in_every_order([&] {
    const device_array<float> c(before);
    const stream on;
    multiply(on, {rows, columns, depth, a.view(), b.view(), {c.data(), stride}, 0.5f, how}, scratch.data());
    on.wait();
    return c.read();
  });
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t c = 0; c < columns; ++c) {
      double sum = 0;
      for (std::int64_t d = 0; d < depth; ++d) sum += a.at(r, d) * b.at(d, c);
      const auto at = std::size_t(r * stride + c);
      ASSERT_NEAR(got[at], 0.5 * sum + (how == into::add ? before[at] : 0.0f), 1e-4)
          << r << " " << c << " turns " << turns;
    }
}

TEST_F(cuda_train_products, of_floats_are_right_whichever_way_their_factors_lie) {
  random_data random(54);
  for (const int turns : {0, 1, 2, 3}) {
    expect_float_product(random, 5, 3, 700, turns);
    expect_float_product(random, 70, 66, 33, turns);
    expect_float_product(random, 1, 130, 16, turns);
    expect_float_product(random, 17, 2, 300, turns);
  }
}

}  // namespace
}  // namespace troupe::cuda
