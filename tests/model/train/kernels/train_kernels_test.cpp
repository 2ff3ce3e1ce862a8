#include "model/train/kernels/train_kernels.hpp"
#include "base/to_size.hpp"

#include <cmath>
#include <numbers>
#include <random>

#include <gtest/gtest.h>

#include "base/aligned_buffer.hpp"
#include "base/error.hpp"
#include "base/philox.hpp"
#include "model/ops/isa.hpp"
#include "model/ops/pack.hpp"
#include "model/train/kernels/products.hpp"
#include "model/train/run/optimizer.hpp"
#include "tests/model/train/kernels/each_instruction_set.hpp"

namespace troupe {
namespace {

class train_kernels : public with_train_kernels {};

TEST_P(train_kernels, products_are_right_for_ragged_shapes) {
  thread_pool pool(2);
  products multiplier({pool, serving()}, train_precision::exact, 64, 640);
  for (const auto& [rows, columns, depth] :
       {std::array<std::int64_t, 3>{1, 1, 1}, {13, 33, 7}, {25, 70, 300}, {49, 16, 513}, {5, 100, 31}})
    for (const bool a_transposed : {false, true})
      for (const auto kind : {operand::kind::rows, operand::kind::columns}) {
        const std::int64_t a_stride = train_stride(a_transposed ? rows : depth);
        const std::int64_t b_stride = train_stride(kind == operand::kind::rows ? columns : depth);
        const auto a = a_transposed ? drawn(depth, rows, a_stride, 1) : drawn(rows, depth, a_stride, 1);
        const auto b =
            kind == operand::kind::rows ? drawn(depth, columns, b_stride, 2) : drawn(columns, depth, b_stride, 2);
        const std::int64_t stride = train_stride(columns);
        auto c = drawn(rows, columns, stride, 3);
        const auto before = c;
        multiplier.multiply({.rows = rows,
                             .columns = columns,
                             .depth = depth,
                             .a = {a.data(), a_stride},
                             .a_transposed = a_transposed,
                             .b = {kind, {b.data(), b_stride}, {}},
                             .c = {c.data(), stride},
                             .factor = 0.5f,
                             .how = into::add});
        for (std::int64_t r = 0; r < rows; ++r)
          for (std::int64_t n = 0; n < columns; ++n) {
            double sum = 0;
            for (std::int64_t k = 0; k < depth; ++k)
              sum += static_cast<double>(a[to_size(a_transposed ? k * a_stride + r : r * a_stride + k)]) *
                     static_cast<double>(b[to_size(kind == operand::kind::rows ? k * b_stride + n : n * b_stride + k)]);
            const auto at = to_size(r * stride + n);
            ASSERT_NEAR(c[at], static_cast<double>(before[at]) + 0.5 * sum,
                        1e-4 * std::sqrt(static_cast<double>(depth)));
          }
      }
}

TEST_P(train_kernels, packed_weights_give_the_product_of_what_they_stand_for) {
  thread_pool pool(2);
  constexpr std::int64_t rows = 29, outs = 83, ins = 150;
  const auto x = drawn(rows, ins, train_stride(ins), 4), dy = drawn(rows, outs, train_stride(outs), 5);
  for (const scheme kind : all_schemes) {
    const auto w = drawn(outs, ins, ins, 6);
    const aligned_buffer<std::byte> memory(packed_bytes(kind, outs, ins).total());
    matrix_packer packer(kind, outs, ins, memory.data());
    coded_row coded;
    for (std::int64_t out = 0; out < outs; ++out) {
      if (!is_integer(kind)) packer.put(out, w.data() + out * ins);
      if (is_integer(kind)) encode_row(kind, w.data() + out * ins, ins, coded), packer.put(out, coded);
    }
    trained_matrix matrix;
    matrix.packed = view_of(kind, outs, ins, memory.data());
    matrix.outs = outs, matrix.ins = ins;
    std::vector<float> plain(to_size(outs * ins));
    for (std::int64_t out = 0; out < outs; ++out) unpack_row(matrix.packed, out, plain.data() + out * ins);
    for (const train_precision precision : {train_precision::exact, train_precision::fine}) {
      products multiplier({pool, serving()}, precision, rows, 160);
      std::vector<float> y(to_size(rows * train_stride(outs)));
      std::vector<float> dx(to_size(rows * train_stride(ins)));
      const products::output out{&matrix, nullptr, {y.data(), train_stride(outs)}};
      multiplier.forward({x.data(), train_stride(ins)}, rows, std::span(&out, 1));
      multiplier.backward({dy.data(), train_stride(outs)}, rows, matrix, {dx.data(), train_stride(ins)}, into::set);
      for (std::int64_t r = 0; r < rows; ++r) {
        for (std::int64_t o = 0; o < outs; ++o) {
          double sum = 0;
          for (std::int64_t i = 0; i < ins; ++i)
            sum += static_cast<double>(plain[to_size(o * ins + i)]) *
                   static_cast<double>(x[to_size(r * train_stride(ins) + i)]);
          ASSERT_NEAR(y[to_size(r * train_stride(outs) + o)], sum, 2e-3) << name_of(kind);
        }
        for (std::int64_t i = 0; i < ins; ++i) {
          double sum = 0;
          for (std::int64_t o = 0; o < outs; ++o)
            sum += static_cast<double>(plain[to_size(o * ins + i)]) *
                   static_cast<double>(dy[to_size(r * train_stride(outs) + o)]);
          ASSERT_NEAR(dx[to_size(r * train_stride(ins) + i)], sum, 2e-3) << name_of(kind);
        }
        for (std::int64_t i = ins; i < rounded_up(ins, 16); ++i)
          ASSERT_EQ(dx[to_size(r * train_stride(ins) + i)], 0.0f);
      }
    }
  }
}

/// What a kernel that goes back through a gated activation says, against slopes of the activation.
void expect_gated_slopes(decltype(train_kernel_table::geglu_back) back, double (*active)(double)) {
  constexpr std::int64_t n = 480;
  std::vector<float> gate(n), up = drawn(n, 7);
  const auto dy = drawn(n, 8);
  for (std::size_t i = 0; i < n; ++i) gate[i] = 0.05f * (static_cast<float>(i) - 240);
  auto gate_gradient = gate, up_gradient = up;
  back(dy.data(), n, gate_gradient.data(), up_gradient.data());
  for (std::size_t i = 0; i < n; ++i) {
    const double x = gate[i], d = dy[i], u = up[i], slope = (active(x + 1e-5) - active(x - 1e-5)) / 2e-5;
    EXPECT_NEAR(up_gradient[i], d * active(x), 1e-6 * std::abs(d * x) + 1e-6) << x;
    EXPECT_NEAR(gate_gradient[i], d * u * slope, 1e-5 * std::abs(d * u)) << x;
  }
}

TEST_P(train_kernels, gated_activations_have_the_slopes_of_their_formulas) {
  expect_gated_slopes(table().swiglu_back, [](double x) { return x / (1 + std::exp(-x)); });
  expect_gated_slopes(table().geglu_back, [](double x) {
    return 0.5 * x * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x)));
  });
}

TEST_P(train_kernels, clamped_activations_have_no_slope_beyond_their_limit) {
  constexpr std::int64_t n = 480;
  constexpr float limit = 2.5f, slope = 1.5f;
  const auto active = [](double gate, double up) {
    const double g = std::min(gate, double(limit)), u = std::clamp(up, -double(limit), double(limit));
    return g / (1 + std::exp(-double(slope) * g)) * (u + 1);
  };
  const auto dy = drawn(n, 8);
  std::vector<float> gate(n), up = drawn(n, 7);
  for (std::size_t i = 0; i < n; ++i) gate[i] = 0.0201f * (static_cast<float>(i) - 240), up[i] *= 3;
  auto gate_gradient = gate, up_gradient = up;
  table().clamped_swiglu_back(dy.data(), n, limit, slope, gate_gradient.data(), up_gradient.data());
  for (std::size_t i = 0; i < n; ++i) {
    const double g = gate[i], u = up[i], d = dy[i], step = 1e-6;
    EXPECT_NEAR(gate_gradient[i], d * (active(g + step, u) - active(g - step, u)) / (2 * step),
                1e-5 * std::abs(d * (u + 1)));
    EXPECT_NEAR(up_gradient[i], d * (active(g, u + step) - active(g, u - step)) / (2 * step),
                1e-5 * std::abs(d * g) + 1e-8);
  }
  train_kernels_like(kernels()).clamped_swiglu_back(dy.data(), n, limit, slope, gate.data(), up.data());
  EXPECT_EQ(gate, gate_gradient) << "on every instruction set";
  EXPECT_EQ(up, up_gradient);
}

TEST_P(train_kernels, gated_activations_have_the_same_slopes_on_every_instruction_set) {
  const auto& usual = train_kernels_like(kernels());
  for (const auto back : {&train_kernel_table::swiglu_back, &train_kernel_table::geglu_back}) {
    auto gate = drawn(480, 9), up = drawn(480, 10), other_gate = gate, other_up = up;
    const auto dy = drawn(480, 11);
    (usual.*back)(dy.data(), 480, gate.data(), up.data());
    (table().*back)(dy.data(), 480, other_gate.data(), other_up.data());
    EXPECT_EQ(gate, other_gate);
    EXPECT_EQ(up, other_up);
  }
}

TEST_P(train_kernels, of_equal_logits_the_first_leads_as_greedy_takes_it) {
  const auto leads = [&](std::int64_t target) {
    aligned_buffer<float> logits(48);
    logits[7] = logits[20] = 3;
    return table().cross_entropy(logits.data(), 40, target, 1).leads;
  };
  EXPECT_TRUE(leads(7));
  EXPECT_FALSE(leads(20));
  EXPECT_FALSE(leads(0));
}

TEST_P(train_kernels, capped_numbers_know_their_slopes) {
  std::vector<float> x(48), slopes(48);
  for (std::size_t i = 0; i < 48; ++i) x[i] = 0.2f * static_cast<float>(i) - 4;
  const std::vector<float> before = x;
  table().cap(x.data(), 48, 0.5f, 0.75f, slopes.data());
  for (std::size_t i = 0; i < 48; ++i) {
    const double tangent = std::tanh(0.5 * static_cast<double>(before[i]) / 0.75);
    EXPECT_NEAR(x[i], 0.75 * tangent, 1e-6);
    EXPECT_NEAR(slopes[i], 0.5 * (1 - tangent * tangent), 1e-6);
  }
}

TEST_P(train_kernels, adam_follows_the_formula) {
  thread_pool pool(1);
  parameter_set set;
  set.add("w", 3, 5, true);
  set.allocate();
  adam_optimizer adam(set, {.weight_decay = 0.1, .clip = 0});
  std::vector<double> value(15), first(15), second(15);
  std::mt19937 random(2);
  std::normal_distribution<float> normal;
  for (std::size_t i = 0; i < 15; ++i) set.values()[i / 5 * 16 + i % 5] = static_cast<float>(value[i] = normal(random));
  for (int step = 1; step <= 5; ++step) {
    for (std::size_t i = 0; i < 15; ++i) {
      const float g = normal(random);
      set.gradients()[i / 5 * 16 + i % 5] = g;
      first[i] = 0.9 * first[i] + 0.1 * static_cast<double>(g);
      second[i] = 0.999 * second[i] + 0.001 * static_cast<double>(g) * static_cast<double>(g);
      value[i] -= 0.01 * 0.1 * value[i];
      value[i] -=
          0.01 * (first[i] / (1 - std::pow(0.9, step))) / (std::sqrt(second[i] / (1 - std::pow(0.999, step))) + 1e-8);
    }
    adam.step({pool, serving()}, 0.01);
  }
  for (std::size_t i = 0; i < 15; ++i) EXPECT_NEAR(set.values()[i / 5 * 16 + i % 5], value[i], 1e-5);
}

TEST_P(train_kernels, elements_are_dropped_where_the_counter_says) {
  const dropout_key key{0.3f, 0x123456789abcdefULL, 5, 9};
  for (const std::int64_t n : {1, 8, 127, 128, 300})
    for (const std::int64_t row : {0, 7}) {
      const auto x = drawn(n, 6);
      auto out = x;
      table().drop(key, row, out.data(), n, out.data());
      for (std::int64_t i = 0; i < n; ++i) {
        const auto block = philox({static_cast<std::uint32_t>(i / 8), static_cast<std::uint32_t>(row), 5, 10},
                                  {0x89abcdef, 0x01234567});
        const std::uint32_t bits = block[to_size(i % 8 / 2)] >> (i % 2 * 16) & 0xffff;
        const auto at = to_size(i);
        ASSERT_EQ(out[at], bits < 19660 ? 0.0f : x[at] * (1.0f / 0.7f)) << i << " of " << n;
      }
    }
}

INSTANTIATE_TEST_SUITE_P(instruction_sets, train_kernels, testing::Values("generic", "avx2", "avx512"),
                         [](const auto& info) { return std::string(info.param); });

TEST(train_precision, has_a_name_that_is_read_again) {
  for (const char* name : {"served", "fine", "exact"}) EXPECT_EQ(name_of(precision_from_name(name)), name);
  EXPECT_THROW(precision_from_name("double"), input_error);
}

TEST(rate_schedule, rises_and_falls) {
  const rate_schedule cosine{schedule_kind::cosine, 2.0, 10, 110};
  EXPECT_DOUBLE_EQ(cosine.at(0), 0.0);
  EXPECT_DOUBLE_EQ(cosine.at(5), 1.0);
  EXPECT_DOUBLE_EQ(cosine.at(10), 2.0);
  EXPECT_NEAR(cosine.at(60), 1.0, 1e-12);
  EXPECT_NEAR(cosine.at(110), 0.0, 1e-12);
  const rate_schedule linear{schedule_kind::linear, 1.0, 0, 4};
  EXPECT_DOUBLE_EQ(linear.at(1), 0.75);
}

}  // namespace
}  // namespace troupe
