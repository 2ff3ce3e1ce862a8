// Operations on single rows against plain formulas in double, and to the bit between instruction sets.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <span>
#include <vector>

#include "base/to_size.hpp"
#include "model/ops/rope.hpp"
#include "model/ops/rows.hpp"
#include "tests/model/ops/random_data.hpp"
#include "tests/model/ops/tested_tables.hpp"

namespace troupe {
namespace {

const std::int64_t lengths[] = {1, 8, 15, 16, 17, 64, 172, 768};

/// Runs `f` with each instruction set's kernels and compares what it writes, to the bit.
void expect_same_everywhere(std::size_t size, const std::function<void(const kernel_table&, float*)>& f) {
  const auto run = [&](const kernel_table& table) {
    aligned_buffer<float> out(size);
    f(table, out.data());
    return out;
  };
  const auto expected = run(*kernels_of("generic"));
  for (const kernel_table* table : tested_tables()) {
    const auto got = run(*table);
    EXPECT_EQ(std::memcmp(got.data(), expected.data(), size * sizeof(float)), 0) << table->isa;
  }
}

TEST(rows, norms_equal_the_formulas) {
  random_data random(21);
  for (const std::int64_t n : lengths) {
    const auto padded = to_size(padded_row(n));
    const auto x = random.rows(1, n, padded_row(n)), w = random.rows(1, n, padded_row(n)),
               b = random.rows(1, n, padded_row(n));
    double mean = 0, squares = 0, variance = 0;
    for (std::int64_t i = 0; i < n; ++i) mean += x[to_size(i)], squares += std::pow(x[to_size(i)], 2);
    mean /= double(n);
    for (std::int64_t i = 0; i < n; ++i) variance += std::pow(x[to_size(i)] - mean, 2);
    aligned_buffer<float> rms(padded), layer(padded);
    kernels().rms_norm(x.data(), w.data(), n, 1e-5f, rms.data());
    kernels().layer_norm(x.data(), w.data(), b.data(), n, 1e-5f, layer.data());
    for (std::size_t i = 0; i < padded; ++i) {
      EXPECT_NEAR(rms[i], x[i] / std::sqrt(squares / double(n) + 1e-5) * w[i], 1e-5);
      const double expected = (x[i] - mean) / std::sqrt(variance / double(n) + 1e-5) * w[i] + b[i];
      EXPECT_NEAR(layer[i], i < to_size(n) ? expected : 0.0, 2e-5);
    }
    expect_same_everywhere(padded, [&](const auto& t, float* out) { t.rms_norm(x.data(), w.data(), n, 1e-5f, out); });
    expect_same_everywhere(
        padded, [&](const auto& t, float* out) { t.layer_norm(x.data(), w.data(), b.data(), n, 1e-5f, out); });
    const std::vector<float> zeros(padded);
    aligned_buffer<float> bare(padded);
    kernels().layer_norm(x.data(), w.data(), zeros.data(), n, 1e-5f, layer.data());
    kernels().layer_norm(x.data(), w.data(), nullptr, n, 1e-5f, bare.data());
    EXPECT_TRUE(std::equal(layer.data(), layer.data() + padded, bare.data()));
  }
}

TEST(rows, are_multiplied_by_a_number) {
  random_data random(8);
  const auto x = random.rows(1, 48, 48);
  expect_same_everywhere(48, [&](const auto& t, float* out) {
    std::copy(x.data(), x.data() + 48, out);
    t.multiply(out, 48, 0.3f);
    for (std::size_t i = 0; i < 48; ++i) EXPECT_EQ(out[i], x[i] * 0.3f);
  });
}

TEST(rows, are_capped_smoothly) {
  std::vector<float> x;
  for (float v = -160; v < 160; v += 0.173f) x.push_back(v);
  while (x.size() % 16) x.push_back(0);
  const auto n = static_cast<std::int64_t>(x.size());
  for (const float cap : {0.5f, 30.0f, 50.0f}) {
    std::vector<float> capped = x;
    kernels().cap(capped.data(), n, cap);
    for (std::size_t i = 0; i < x.size(); ++i)
      EXPECT_NEAR(capped[i], double(cap) * std::tanh(double(x[i]) / double(cap)), 3e-7 * double(cap)) << x[i];
    EXPECT_EQ(capped.back(), 0) << "padding stays";
    expect_same_everywhere(x.size(), [&](const auto& t, float* out) {
      std::copy(x.begin(), x.end(), out);
      t.cap(out, n, cap);
    });
  }
}

TEST(rows, activations_equal_the_formulas_over_the_whole_range) {
  std::vector<float> x;
  for (float v = -120; v < 120; v += 0.173f) x.push_back(v);
  while (x.size() % 16) x.push_back(0);
  const auto n = static_cast<std::int64_t>(x.size());
  std::vector<float> up(x.size(), 2.0f), silu(x.size()), gelu(x.size()), gated(x.size()), squared(x.size());
  kernels().swiglu(x.data(), up.data(), n, silu.data());
  kernels().geglu(x.data(), up.data(), n, gated.data());
  kernels().gelu_tanh(x.data(), n, gelu.data());
  kernels().squared_relu(x.data(), n, squared.data());
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double v = x[i];
    EXPECT_NEAR(silu[i], 2 * v / (1 + std::exp(-v)), 1e-6 + 3e-7 * std::fabs(v)) << v;
    EXPECT_NEAR(gelu[i], 0.5 * v * (1 + std::tanh(std::sqrt(2 / M_PI) * (v + 0.044715 * v * v * v))),
                1e-6 + 3e-7 * std::fabs(v))
        << v;
    EXPECT_EQ(gated[i], 2 * gelu[i]) << v;
    EXPECT_EQ(squared[i], x[i] > 0 ? x[i] * x[i] : 0) << v;
  }
  expect_same_everywhere(x.size(), [&](const auto& t, float* out) { t.geglu(x.data(), up.data(), n, out); });
  expect_same_everywhere(x.size(), [&](const auto& t, float* out) { t.swiglu(x.data(), up.data(), n, out); });
  expect_same_everywhere(x.size(), [&](const auto& t, float* out) { t.gelu_tanh(x.data(), n, out); });
  expect_same_everywhere(x.size(), [&](const auto& t, float* out) { t.squared_relu(x.data(), n, out); });
}

TEST(rows, clamped_activations_equal_the_formula) {
  std::vector<float> gate, up;
  for (float v = -24; v < 24; v += 0.173f) gate.push_back(v), up.push_back(1.5f * std::sin(v) * v);
  while (gate.size() % 16) gate.push_back(0), up.push_back(0);
  const auto n = static_cast<std::int64_t>(gate.size());
  std::vector<float> made(gate.size());
  kernels().clamped_swiglu(gate.data(), up.data(), n, 7.0f, 1.702f, made.data());
  for (std::size_t i = 0; i < gate.size(); ++i) {
    const double g = std::min(double(gate[i]), 7.0), u = std::clamp(double(up[i]), -7.0, 7.0);
    EXPECT_NEAR(made[i], g / (1 + std::exp(-double(1.702f) * g)) * (u + 1), 1e-6 + 1e-6 * std::fabs(g * u)) << gate[i];
  }
  EXPECT_EQ(made.back(), 0) << "padding stays";
  expect_same_everywhere(
      gate.size(), [&](const auto& t, float* out) { t.clamped_swiglu(gate.data(), up.data(), n, 7.0f, 1.702f, out); });
}

TEST(rows, exponentials_are_within_two_units_and_end_at_zero) {
  std::vector<float> x;
  for (float v = -100; v <= 0; v += 0.0137f) x.push_back(v);
  x.push_back(-std::numeric_limits<float>::infinity());
  while (x.size() % 16) x.push_back(-std::numeric_limits<float>::infinity());
  std::vector<float> e(x.size());
  const float sum = kernels().exponentials(x.data(), static_cast<std::int64_t>(x.size()), 0.0f, e.data());
  double expected_sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double expected = x[i] < -87 ? 0 : std::exp(double(x[i]));
    expected_sum += expected;
    EXPECT_NEAR(e[i], expected, expected * 2.4e-7) << x[i];
  }
  EXPECT_NEAR(sum, expected_sum, expected_sum * 1e-6);
  expect_same_everywhere(x.size(), [&](const auto& t, float* out) {
    t.exponentials(x.data(), static_cast<std::int64_t>(x.size()), -3.0f, out);
  });
}

TEST(rows, quantized_inputs_are_within_half_a_step_and_their_sums_exact) {
  random_data random(22);
  for (const kernel_table* table : tested_tables()) {
    thread_pool pool(1);
    for (const int rows : {1, 5, 13, 30}) {
      const std::int64_t n = 100, padded = padded_row(n);
      const auto x = random.rows(rows, n, padded);
      quantized_rows quantized(*table, rows, n);
      quantized.assign(pool, x.data(), padded, rows, n);
      const quantized_view& q = quantized.view();
      for (int row = 0; row < rows; ++row) {
        const std::int64_t tile = row / q.tile.rows * q.tile.rows, in_tile = row % q.tile.rows;
        std::int32_t total = 0;
        for (std::int64_t i = 0; i < padded; ++i) {
          const int value = integer_at(q, row, i);
          EXPECT_NEAR(static_cast<float>(value) * q.scales[row], x[to_size(row * padded + i)], q.scales[row] * 0.501);
          total += value;
          if (table->wide_inputs) {
            const std::int64_t swapped[] = {0, 2, 1, 3};
            EXPECT_EQ(q.wide[tile * padded + (i / 4 * q.tile.rows + in_tile) * 4 + swapped[i % 4]], value);
          }
        }
        EXPECT_EQ(q.sums[row], total);
        std::int32_t of_groups = 0;
        for (std::int64_t g = 0; g < padded / 32; ++g)
          of_groups += q.group_sums[tile * (padded / 32) + g * q.tile.rows + in_tile];
        EXPECT_EQ(of_groups, total);
      }
    }
  }
}

TEST(rows, of_few_long_inputs_or_of_many_short_ones_share_their_memory) {
  random_data random(23);
  thread_pool pool(1);
  const std::array rooms{input_room{40, 64}, input_room{3, 1000}};
  for (const kernel_table* table : tested_tables()) {
    quantized_rows quantized(*table, rooms);
    for (const auto& [rows, ins] : rooms) {
      const auto x = random.rows(static_cast<int>(rows), ins, padded_row(ins));
      quantized_rows alone(*table, rows, ins);
      for (quantized_rows* each : {&quantized, &alone})
        each->assign(pool, x.data(), padded_row(ins), static_cast<int>(rows), ins);
      for (std::int64_t row = 0; row < rows; ++row)
        for (std::int64_t i = 0; i < ins; ++i)
          ASSERT_EQ(integer_at(quantized.view(), row, i), integer_at(alone.view(), row, i));
    }
  }
}

TEST(rows, inputs_in_16_bits_take_the_whole_range_and_their_sums_are_exact) {
  random_data random(24);
  const std::int64_t n = 100, padded = padded_row(n);
  const auto x = random.rows(13, n, padded);
  for (const kernel_table* table : tested_tables()) {
    quantized_rows quantized(*table, 13, n, input_bits::sixteen);
    quantized.begin(13, n, input_bits::sixteen);
    for (int row = 0; row < 13; ++row) quantized.put(row, x.data() + row * padded);
    const quantized_view& q = quantized.view();
    for (int row = 0; row < 13; ++row) {
      std::int32_t total = 0, largest = 0;
      for (std::int64_t i = 0; i < padded; ++i) {
        const std::int32_t value = integer_at(q, row, i);
        largest = std::max(largest, std::abs(value));
        EXPECT_NEAR(static_cast<float>(value) * q.scales[row], x[to_size(row * padded + i)], q.scales[row] * 0.51f);
        total += value;
      }
      EXPECT_EQ(largest, 32639);
      EXPECT_EQ(q.sums[row], total);
    }
  }
}

TEST(rows, a_row_of_zeros_quantizes_to_zeros) {
  thread_pool pool(1);
  const std::vector<float> x(64, 0.0f);
  quantized_rows quantized(kernels(), 1, 64);
  quantized.assign(pool, x.data(), 64, 1, 64);
  EXPECT_EQ(quantized.view().scales[0], 0.0f);
  EXPECT_EQ(quantized.view().sums[0], 0);
}

TEST(rope, angles_equal_the_library_for_positions_far_out) {
  model_config config;
  config.head_dim = 64;
  config.rope.theta = 500000;
  const rope_angles angles(config.rope, config.turned_dim(), config.context);
  float c[32], s[32];
  for (const std::int64_t position : {0, 1, 2, 77, 4095, 131071}) {
    angles.at(position, c, s);
    for (int i = 0; i < 32; ++i) {
      const double frequency = static_cast<float>(1.0 / std::pow(500000.0, 2.0 * i / 64));
      EXPECT_NEAR(c[i], std::cos(double(position) * frequency), 1e-7) << position << " " << i;
      EXPECT_NEAR(s[i], std::sin(double(position) * frequency), 1e-7) << position << " " << i;
    }
  }
}

/// Against a length and frequencies: cosines and sines of all pairs, near and far.
void expect_angles(const rope_angles& angles, double length, std::span<const double> frequencies) {
  std::vector<float> c(frequencies.size()), s(frequencies.size());
  for (const std::int64_t position : {0, 1, 1000}) {
    angles.at(position, c.data(), s.data());
    for (std::size_t i = 0; i < frequencies.size(); ++i) {
      const double angle = double(position) * frequencies[i];
      EXPECT_NEAR(c[i], length * std::cos(angle), 1e-7 + 3e-7 * angle) << position << " " << i;
      EXPECT_NEAR(s[i], length * std::sin(angle), 1e-7 + 3e-7 * angle) << position << " " << i;
    }
  }
}

/// Against what transformers computes for a head of 16.
void expect_yarn(double factor, std::int64_t original_context, const yarn_config& yarn, double length,
                 const std::array<double, 8>& frequencies) {
  model_config config;
  config.head_dim = 16;
  config.rope.scaling = rope_scaling::yarn;
  config.rope.factor = factor;
  config.rope.original_context = original_context;
  config.rope.yarn = yarn;
  expect_angles(rope_angles(config.rope, config.turned_dim(), config.context), length, frequencies);
}

TEST(rope, yarn_blends_and_lengthens_as_the_reference) {
  expect_yarn(4, 32768, {}, 1.1386294361119891,
              {1, 0.316227764, 0.1, 0.0316227786, 0.01, 0.00256935088, 0.000625000044, 0.000138349656});
  expect_yarn(4, 32768, {.truncate = false, .mscale_all_dim = 0.5}, 1.0648216253695715,
              {1, 0.316227764, 0.1, 0.0316227786, 0.01, 0.00270865718, 0.000607408001, 0.000113292816});
  expect_yarn(8, 512, {.beta_fast = 16, .beta_slow = 2, .attention_factor = 1.25, .mscale = 0}, 1.25,
              {1, 0.316227764, 0.0708333328, 0.0131761581, 0.00125, 0.000395284733, 0.000125, 3.95284733e-05});
  expect_yarn(8, 8, {.beta_fast = 64, .beta_slow = 32}, 1.2079441541679836,
              {1, 0.316227764, 0.1, 0.0316227786, 0.01, 0.00316227786, 0.001, 0.000316227786});
}

/// Against what transformers computes for three quarters of a head of 16.
void expect_longrope(const rope_config& rope, std::int64_t context, double length,
                     const std::array<double, 6>& frequencies) {
  model_config config;
  config.head_dim = 16;
  config.rotary_dim = 12;
  expect_angles(rope_angles(rope, config.turned_dim(), context), length, frequencies);
}

TEST(rope, longrope_divides_by_other_numbers_where_the_context_is_short) {
  rope_config rope;
  rope.scaling = rope_scaling::longrope;
  rope.factor = 32;
  rope.original_context = 4096;
  rope.frequency_divisors = {1.5f, 2, 4, 8, 16, 32};
  rope.short_divisors = {1, 1, 1, 1.25f, 1.5f, 2};
  const std::array<double, 6> of_short = {1, 0.215443447, 0.046415884, 0.00800000038, 0.00143628952, 0.000232079474};
  const std::array<double, 6> of_long = {0.666666687,   0.107721724,    0.011603971,
                                         0.00124999997, 0.000134652146, 1.45049671e-05};
  expect_longrope(rope, 4096, 1.1902380714238083, of_short);
  expect_longrope(rope, 4097, 1.1902380714238083, of_long);
  rope.length = 1.25;
  expect_longrope(rope, 4097, 1.25, of_long);
}

TEST(rope, rotates_halves_alike_on_every_instruction_set) {
  random_data random(23);
  struct part {
    std::int64_t dim, turned;
  };
  for (const part head : {part{8, 8}, {24, 24}, {64, 64}, {128, 128}, {128, 96}, {16, 12}, {80, 32}}) {
    const std::int64_t heads = 3, dim = head.dim, turned = head.turned, half = turned / 2;
    const auto x = random.rows(1, heads * dim, heads * dim), c = random.rows(1, half, dim),
               s = random.rows(1, half, dim);
    expect_same_everywhere(to_size(heads * dim), [&](const kernel_table& t, float* out) {
      std::memcpy(out, x.data(), to_size(heads * dim) * sizeof(float));
      t.rotate(out, heads, dim, turned, c.data(), s.data());
      for (std::int64_t h = 0; h < heads; ++h) {
        for (std::int64_t i = 0; i < half; ++i) {
          const auto a = to_size(h * dim + i), b = a + to_size(half), k = to_size(i);
          EXPECT_NEAR(out[a], x[a] * c[k] - x[b] * s[k], 1e-5);
          EXPECT_NEAR(out[b], x[b] * c[k] + x[a] * s[k], 1e-5);
        }
        for (std::int64_t i = turned; i < dim; ++i) EXPECT_EQ(out[h * dim + i], x[to_size(h * dim + i)]);
      }
    });
  }
}

TEST(rows, are_ended_by_zeros_up_to_where_products_read_them_and_no_further) {
  for (const std::int64_t width : {std::int64_t{0}, std::int64_t{15}, std::int64_t{64}, std::int64_t{80}}) {
    std::vector<float> row(192, 1.0f), expected = row;
    std::fill(expected.begin() + width, expected.begin() + padded_row(width), 0.0f);
    end_row(row.data(), width);
    EXPECT_EQ(row, expected) << width;
  }
}

}  // namespace
}  // namespace troupe
