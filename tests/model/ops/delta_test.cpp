// Kernels of linear attention and of state spaces against plain formulas in double, and to the bit between instruction
// sets and chunks.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>

#include "base/to_size.hpp"
#include "tests/model/ops/random_data.hpp"
#include "tests/model/ops/tested_tables.hpp"

namespace troupe {
namespace {

/// Of the kernels.
using rule = void (*kernel_table::*)(const delta_args&);
constexpr rule corrects = &kernel_table::delta_rule, adds = &kernel_table::state_space;
constexpr float skip = 0.75f;

struct delta_shape {
  std::int64_t key_dim, value_dim;
  int rows;
};

/// Rows of a sequence, as a decoder has them: q, k and v of a row beside each other, and two numbers of each head.
struct delta_case {
  delta_shape shape;
  std::int64_t stride = 2 * shape.key_dim + shape.value_dim + 16;
  aligned_buffer<float> rows, shares, state;

  delta_case(random_data& random, const delta_shape& of)
      : shape(of),
        rows(random.rows(of.rows, stride, stride)),
        shares(random.rows(of.rows, 16, 16)),
        state(random.rows(1, of.key_dim * of.value_dim, of.key_dim * of.value_dim)) {
    for (std::size_t i = 0; i < shares.size(); ++i) shares[i] = 1 / (1 + std::exp(-shares[i]));
    for (int row = 0; row < of.rows; ++row)  // of length one, as the rule wants them
      for (std::int64_t i = 0; i < 2 * of.key_dim; ++i)
        rows[to_size(row * stride + i)] /= std::sqrt(static_cast<float>(of.key_dim));
  }

  /// In chunks; `out` is [rows, value_dim], and behind it the state.
  aligned_buffer<float> run(const kernel_table& table, int chunk, rule by) const {
    const auto answers = to_size(shape.rows * shape.value_dim);
    const auto matrix = to_size(shape.key_dim * shape.value_dim);
    aligned_buffer<float> out(answers + matrix);
    std::copy_n(state.data(), matrix, out.data() + answers);
    for (int first = 0; first < shape.rows; first += chunk) {
      const float* at = rows.data() + first * stride;
      (table.*by)({.key_dim = shape.key_dim,
                   .value_dim = shape.value_dim,
                   .rows = std::min(chunk, shape.rows - first),
                   .q = at,
                   .k = at + shape.key_dim,
                   .v = at + 2 * shape.key_dim,
                   .row_stride = stride,
                   .decays = shares.data() + first * 16,
                   .betas = shares.data() + first * 16 + 1,
                   .share_stride = 16,
                   .skip = skip,
                   .out = out.data() + first * shape.value_dim,
                   .out_stride = shape.value_dim,
                   .state = out.data() + answers});
    }
    return out;
  }

  /// Column by column.
  std::vector<double> expected(rule by) const {
    const auto key_dim = to_size(shape.key_dim), value_dim = to_size(shape.value_dim);
    std::vector<double> all(to_size(shape.rows) * value_dim + key_dim * value_dim);
    double* const states = all.data() + to_size(shape.rows) * value_dim;
    for (std::size_t column = 0; column < value_dim; ++column) {
      double* const s = states + column / 16 * key_dim * 16 + column % 16;
      for (std::size_t i = 0; i < key_dim; ++i) s[i * 16] = state[column / 16 * key_dim * 16 + i * 16 + column % 16];
      for (int r = 0; r < shape.rows; ++r) {
        const float *q = rows.data() + r * stride, *k = q + key_dim, *v = k + key_dim, *share = shares.data() + r * 16;
        double said = 0;
        for (std::size_t i = 0; i < key_dim; ++i) said += (s[i * 16] *= share[0]) * k[i];
        double& answer = all[to_size(r) * value_dim + column];
        if (by == adds) said = 0, answer = double(skip) * double(v[column]);
        for (std::size_t i = 0; i < key_dim; ++i) {
          s[i * 16] += k[i] * (v[column] - said) * share[1];
          answer += s[i * 16] * q[i];
        }
      }
    }
    return all;
  }
};

const delta_shape delta_shapes[] = {{16, 16, 1}, {32, 48, 5}, {128, 128, 3}, {48, 32, 9}, {16, 80, 2}};

TEST(delta_rule, equals_the_formula) {
  random_data random(3);
  for (const delta_shape& shape : delta_shapes) {
    const delta_case some(random, shape);
    for (const rule by : {corrects, adds}) {
      const auto got = some.run(kernels(), shape.rows, by);
      const auto expected = some.expected(by);
      for (std::size_t i = 0; i < expected.size(); ++i) ASSERT_NEAR(got[i], expected[i], 1e-4) << i;
    }
  }
}

TEST(delta_rule, is_the_same_with_any_instruction_set_and_in_any_chunks) {
  random_data random(4);
  for (const delta_shape& shape : delta_shapes) {
    const delta_case some(random, shape);
    for (const rule by : {corrects, adds}) {
      const auto expected = some.run(*kernels_of("generic"), shape.rows, by);
      for (const kernel_table* table : tested_tables())
        for (const int chunk : {1, 2, shape.rows}) {
          const auto got = some.run(*table, chunk, by);
          EXPECT_EQ(std::memcmp(got.data(), expected.data(), got.size() * sizeof(float)), 0)
              << table->isa << " in chunks of " << chunk;
        }
    }
  }
}

struct convolved {
  static constexpr std::int64_t channels = 48, stride = 64;
  static constexpr int rows = 7;
  int kernel;
  aligned_buffer<float> weights, bias, x, before;

  convolved(random_data& random, int of)
      : kernel(of),
        weights(random.rows(of, channels, stride)),
        bias(random.rows(1, channels, channels)),
        x(random.rows(rows, channels, stride)),
        before(random.rows(of, channels, channels)) {}

  /// The rows, and behind them what is kept.
  aligned_buffer<float> run(const kernel_table& table, int chunk, bool is_biased = false) const {
    constexpr std::size_t size = rows * stride;
    aligned_buffer<float> out(size + before.size());
    std::copy_n(x.data(), size, out.data());
    std::copy_n(before.data(), before.size(), out.data() + size);
    for (int first = 0; first < rows; first += chunk)
      table.convolve({.columns = {.weights = weights.data(),
                                  .weight_stride = stride,
                                  .bias = is_biased ? bias.data() : nullptr,
                                  .kernel = kernel,
                                  .count = channels},
                      .x = out.data() + first * stride,
                      .row_stride = stride,
                      .rows = std::min(chunk, rows - first),
                      .before = out.data() + size,
                      .before_stride = channels});
    return out;
  }
  /// A row before the first one, or one of them.
  double at(int row, std::int64_t channel) const {
    return row < 0 ? before[to_size((row + kernel - 1) * channels + channel)] : x[to_size(row * stride + channel)];
  }
};

TEST(convolution, equals_the_formula_and_keeps_the_last_rows) {
  random_data random(5);
  for (const int kernel : {1, 2, 4, most_convolved_rows}) {
    const convolved some(random, kernel);
    const auto got = some.run(kernels(), 3), biased = some.run(kernels(), 3, true);
    for (std::int64_t c = 0; c < convolved::channels; ++c) {
      for (int row = 0; row < convolved::rows; ++row) {
        double sum = 0;
        for (int j = 0; j < kernel; ++j)
          sum += some.weights[to_size(j * convolved::stride + c)] * some.at(row - kernel + 1 + j, c);
        ASSERT_NEAR(got[to_size(row * convolved::stride + c)], sum / (1 + std::exp(-sum)), 2e-5);
        sum += some.bias[to_size(c)];
        ASSERT_NEAR(biased[to_size(row * convolved::stride + c)], sum / (1 + std::exp(-sum)), 2e-5);
      }
      for (int j = 0; j < kernel - 1; ++j)
        ASSERT_EQ(got[to_size(convolved::rows * convolved::stride + j * convolved::channels + c)],
                  static_cast<float>(some.at(convolved::rows - kernel + 1 + j, c)));
    }
  }
}

TEST(convolution, is_the_same_with_any_instruction_set_and_in_any_chunks) {
  random_data random(6);
  for (const int kernel : {1, 3, 4}) {
    const convolved some(random, kernel);
    const auto expected = some.run(*kernels_of("generic"), convolved::rows);
    for (const kernel_table* table : tested_tables())
      for (const int chunk : {1, 2, convolved::rows}) {
        const auto got = some.run(*table, chunk);
        EXPECT_EQ(std::memcmp(got.data(), expected.data(), got.size() * sizeof(float)), 0) << table->isa;
      }
  }
}

/// Rows of b, c and x, beside each other.
struct convolved_between_gates {
  static constexpr std::int64_t channels = 48, stride = 3 * channels, out_stride = 64;
  static constexpr int rows = 7;
  int kernel;
  aligned_buffer<float> weights, branches, before;

  convolved_between_gates(random_data& random, int of)
      : kernel(of),
        weights(random.rows(of, channels, out_stride)),
        branches(random.rows(rows, stride, stride)),
        before(random.rows(of, channels, channels)) {}

  /// The rows, and behind them what is kept.
  aligned_buffer<float> run(const kernel_table& table, int chunk) const {
    constexpr std::size_t size = rows * out_stride;
    aligned_buffer<float> out(size + before.size());
    std::copy_n(before.data(), before.size(), out.data() + size);
    for (int first = 0; first < rows; first += chunk) {
      const float* b = branches.data() + first * stride;
      table.short_convolve(
          {.columns = {.weights = weights.data(), .weight_stride = out_stride, .kernel = kernel, .count = channels},
           .b = b,
           .c = b + channels,
           .x = b + 2 * channels,
           .row_stride = stride,
           .rows = std::min(chunk, rows - first),
           .out = out.data() + first * out_stride,
           .out_stride = out_stride,
           .before = out.data() + size,
           .before_stride = channels});
    }
    return out;
  }
  double at(int row, std::int64_t channel) const {
    if (row < 0) return before[to_size((row + kernel - 1) * channels + channel)];
    return branches[to_size(row * stride + channel)] * branches[to_size(row * stride + 2 * channels + channel)];
  }
};

TEST(short_convolution, equals_the_formula_and_keeps_the_last_rows) {
  random_data random(7);
  using shape = convolved_between_gates;
  for (const int kernel : {1, 2, 3, most_convolved_rows}) {
    const shape some(random, kernel);
    const auto got = some.run(kernels(), 3);
    for (std::int64_t c = 0; c < shape::channels; ++c) {
      for (int row = 0; row < shape::rows; ++row) {
        double sum = 0;
        for (int j = 0; j < kernel; ++j)
          sum += some.weights[to_size(j * shape::out_stride + c)] * some.at(row - kernel + 1 + j, c);
        const double closing = some.branches[to_size(row * shape::stride + shape::channels + c)];
        ASSERT_NEAR(got[to_size(row * shape::out_stride + c)], sum * closing, 5e-5);
      }
      for (int j = 0; j < kernel - 1; ++j)
        ASSERT_EQ(got[to_size(shape::rows * shape::out_stride + j * shape::channels + c)],
                  static_cast<float>(some.at(shape::rows - kernel + 1 + j, c)));
    }
  }
}

TEST(short_convolution, is_the_same_with_any_instruction_set_and_in_any_chunks) {
  random_data random(10);
  for (const int kernel : {1, 3, 4}) {
    const convolved_between_gates some(random, kernel);
    const auto expected = some.run(*kernels_of("generic"), convolved_between_gates::rows);
    for (const kernel_table* table : tested_tables())
      for (const int chunk : {1, 2, convolved_between_gates::rows}) {
        const auto got = some.run(*table, chunk);
        EXPECT_EQ(std::memcmp(got.data(), expected.data(), got.size() * sizeof(float)), 0) << table->isa;
      }
  }
}

/// Runs `f` with each instruction set's kernels and compares what it writes with the plain ones', which it returns.
aligned_buffer<float> same_everywhere(std::size_t size, const std::function<void(const kernel_table&, float*)>& f) {
  aligned_buffer<float> expected(size);
  f(*kernels_of("generic"), expected.data());
  for (const kernel_table* table : tested_tables()) {
    aligned_buffer<float> got(size);
    f(*table, got.data());
    EXPECT_EQ(std::memcmp(got.data(), expected.data(), size * sizeof(float)), 0) << table->isa;
  }
  return expected;
}

TEST(delta_shares, equal_the_formulas_from_end_to_end) {
  constexpr std::int64_t n = 4096;
  aligned_buffer<float> a(n), b(n), bias(n), rates(n);
  for (int i = 0; i < n; ++i) {
    const auto at = to_size(i);
    a[at] = static_cast<float>(i - n / 2) * 0.06f, b[at] = -a[at];
    bias[at] = 0.3f, rates[at] = static_cast<float>(i % 7) * 0.4f;
  }
  const auto got = same_everywhere(2 * n, [&](const kernel_table& table, float* out) {
    std::copy_n(a.data(), n, out);
    std::copy_n(b.data(), n, out + n);
    table.delta_shares(out, out + n, bias.data(), rates.data(), n);
  });
  for (std::size_t i = 0; i < n; ++i) {
    const double x = double(a[i]) + double(bias[i]);
    const double softplus = std::max(x, 0.0) + std::log1p(std::exp(-std::fabs(x)));
    ASSERT_NEAR(got[i], std::exp(-rates[i] * softplus), 1e-6) << x;
    ASSERT_NEAR(got[n + i], 1 / (1 + std::exp(-double(b[i]))), 1e-6) << b[i];
  }
}

TEST(delta_shares, of_state_spaces_are_one_step) {
  constexpr std::int64_t n = 4096;
  aligned_buffer<float> a(n), bias(n), rates(n);
  for (int i = 0; i < n; ++i) {
    const auto at = to_size(i);
    a[at] = static_cast<float>(i - n / 2) * 0.06f, bias[at] = 0.3f, rates[at] = static_cast<float>(i % 7) * 0.4f;
  }
  const auto got = same_everywhere(2 * n, [&](const kernel_table& table, float* out) {
    std::copy_n(a.data(), n, out);
    table.state_space_shares(out, out + n, bias.data(), rates.data(), n);
  });
  for (std::size_t i = 0; i < n; ++i) {
    const double x = double(a[i]) + double(bias[i]);
    const double step = std::max(x, 0.0) + std::log1p(std::exp(-std::fabs(x)));
    ASSERT_NEAR(got[i], std::exp(-rates[i] * step), 1e-6) << x;
    ASSERT_NEAR(got[n + i], step, 2e-6 * std::max(step, 1.0)) << x;
  }
}

TEST(delta_shares, tell_slow_decays_apart) {
  aligned_buffer<float> a(16), b(16), bias(16), rates(16);
  for (std::size_t i = 0; i < 16; ++i) a[i] = -8, rates[i] = 0.01f * static_cast<float>(i + 1);
  kernels().delta_shares(a.data(), b.data(), bias.data(), rates.data(), 16);
  for (std::size_t i = 0; i < 16; ++i) ASSERT_NEAR(1 - a[i], rates[i] * std::log1p(std::exp(-8.0)), 1e-7);
}

TEST(unit_norm, gives_rows_of_one_length) {
  random_data random(8);
  const auto x = random.rows(1, 48, 48);
  double squares = 0;
  for (std::size_t i = 0; i < 48; ++i) squares += double(x[i]) * double(x[i]);
  const auto got = same_everywhere(48, [&](const kernel_table& table, float* out) {
    std::copy_n(x.data(), 48, out);
    table.unit_norm(out, 48, 0.5f, 0.25f);
  });
  for (std::size_t i = 0; i < 48; ++i) EXPECT_NEAR(got[i], x[i] * 0.25 / std::sqrt(squares + 0.5), 1e-6);
}

TEST(open_gate, weighs_numbers_and_leaves_those_behind_alone) {
  random_data random(9);
  for (const std::int64_t n : {1, 15, 16, 40}) {
    const auto x = random.rows(1, 64, 64), gate = random.rows(1, 64, 64);
    const auto got = same_everywhere(64, [&](const kernel_table& table, float* out) {
      std::copy_n(x.data(), 64, out);
      table.open_gate(gate.data(), n, out);
    });
    for (std::int64_t i = 0; i < 64; ++i) {
      const auto at = to_size(i);
      if (i < n)
        EXPECT_NEAR(got[at], x[at] / (1 + std::exp(-double(gate[at]))), 1e-6);
      else
        EXPECT_EQ(got[at], x[at]);
    }
  }
}

}  // namespace
}  // namespace troupe
