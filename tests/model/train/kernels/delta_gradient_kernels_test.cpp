// What goes back through linear attention and state spaces, against slopes of plain formulas in double; the same on
// every instruction set.
#include <cmath>
#include <functional>
#include <vector>

#include <gtest/gtest.h>

#include "base/to_size.hpp"
#include "model/ops/isa.hpp"
#include "model/train/kernels/train_kernels.hpp"
#include "tests/model/train/kernels/each_instruction_set.hpp"

namespace troupe {
namespace {

using doubles = std::vector<double>;
using floats = std::vector<float>;
using formula = std::function<double(const doubles&)>;

class delta_gradients : public with_train_kernels {
 protected:
  const train_kernel_table& usual() const { return train_kernels_like(kernels()); }
};

double sigmoid(double x) {
  return 1 / (1 + std::exp(-x));
}

double dot(const double* x, const float* weights, std::size_t n) {
  double sum = 0;
  for (std::size_t i = 0; i < n; ++i) sum += x[i] * static_cast<double>(weights[i]);
  return sum;
}

void expect_slopes(const floats& got, const floats& at, const formula& of) {
  doubles x(at.begin(), at.end());
  for (std::size_t i = 0; i < x.size(); ++i) {
    constexpr double step = 1e-5;
    const double middle = x[i];
    x[i] = middle + step;
    double slope = of(x);
    x[i] = middle - step;
    slope = (slope - of(x)) / (2 * step);
    x[i] = middle;
    ASSERT_NEAR(got[i], slope, 2e-5 * (1 + std::abs(slope))) << i;
  }
}

/// Of the kernels.
using rule = void (*train_kernel_table::*)(const delta_back_args&);
constexpr rule corrects = &train_kernel_table::delta_rule_back, adds = &train_kernel_table::state_space_back;
constexpr float skip = 0.75f;

/// A row of a head, and what its answer and the state behind it are worth.
struct delta_step {
  static constexpr std::size_t key_dim = 32, value_dim = 48, state_size = key_dim * value_dim;
  floats x = drawn(2 * key_dim + value_dim + 2 + state_size, 1, 0.3f);  // q, k, v, decay, beta, state
  floats answer_worth = drawn(value_dim, 2), state_worth = drawn(state_size, 3);

  static std::size_t at_state(std::size_t key, std::size_t value) {
    return value / 16 * key_dim * 16 + key * 16 + value % 16;
  }
  double worth(const doubles& in, rule by) const {
    const double *q = in.data(), *k = q + key_dim, *v = k + key_dim, decay = v[value_dim], beta = v[value_dim + 1];
    doubles state(v + value_dim + 2, v + value_dim + 2 + state_size), answer(value_dim, 0.0);
    for (std::size_t c = 0; c < value_dim; ++c) {
      double said = 0;
      for (std::size_t i = 0; i < key_dim; ++i) said += k[i] * (state[at_state(i, c)] *= decay);
      if (by == adds) said = 0, answer[c] = static_cast<double>(skip) * v[c];
      for (std::size_t i = 0; i < key_dim; ++i)
        answer[c] += q[i] * (state[at_state(i, c)] += k[i] * beta * (v[c] - said));
    }
    return dot(answer.data(), answer_worth.data(), value_dim) + dot(state.data(), state_worth.data(), state_size);
  }
  /// In the order of x; what is added to begins with `before`.
  floats gradient(const train_kernel_table& table, rule by, float before = 0) const {
    floats to(x.size(), before), scratch(3 * key_dim * 16, 7.0f);
    const float *k = x.data() + key_dim, *v = k + key_dim;
    float *v_to = to.data() + 2 * key_dim, *state_to = v_to + value_dim + 2;
    std::copy(state_worth.begin(), state_worth.end(), state_to);
    (table.*by)({.key_dim = key_dim,
                 .value_dim = value_dim,
                 .q = x.data(),
                 .k = k,
                 .v = v,
                 .decay = v[value_dim],
                 .beta = v[value_dim + 1],
                 .skip = skip,
                 .state = v + value_dim + 2,
                 .out_gradient = answer_worth.data(),
                 .state_gradient = state_to,
                 .q_gradient = to.data(),
                 .k_gradient = to.data() + key_dim,
                 .v_gradient = v_to,
                 .decay_gradient = v_to + value_dim,
                 .beta_gradient = v_to + value_dim + 1,
                 .scratch = scratch.data()});
    return to;
  }
};

TEST_P(delta_gradients, follow_the_rule) {
  const delta_step step;
  for (const rule by : {corrects, adds}) {
    const floats got = step.gradient(table(), by);
    expect_slopes(got, step.x, [&](const doubles& in) { return step.worth(in, by); });
    EXPECT_EQ(got, step.gradient(usual(), by));
  }
}

TEST_P(delta_gradients, of_queries_and_keys_are_added_up) {
  const delta_step step;
  for (const rule by : {corrects, adds}) {
    const floats plain = step.gradient(table(), by), added = step.gradient(table(), by, 3.0f);
    for (std::size_t i = 0; i < step.x.size(); ++i)
      EXPECT_NEAR(added[i], plain[i] + (i < 2 * delta_step::key_dim ? 3.0f : 0.0f), 1e-5f) << i;
  }
}

TEST_P(delta_gradients, follow_the_convolution) {
  constexpr std::size_t channels = 32, stride = 48;
  for (const std::size_t kernel : {1u, 2u, 4u})
    for (const std::size_t rows : {1u, 3u, 9u}) {
      const floats weights = drawn(kernel * channels, 4), x = drawn(rows * channels, 5),
                   worth = drawn(rows * stride, 6), bias = kernel == 4 ? drawn(channels, 18) : floats();
      const auto value = [&](const doubles& in) {
        double sum = 0;
        for (std::size_t r = 0; r < rows; ++r)
          for (std::size_t c = 0; c < channels; ++c) {
            double total = bias.empty() ? 0 : static_cast<double>(bias[c]);
            for (std::size_t j = 0; j < kernel; ++j)
              if (r + j + 1 >= kernel)
                total += static_cast<double>(weights[j * channels + c]) * in[(r + j + 1 - kernel) * channels + c];
            sum += total * sigmoid(total) * static_cast<double>(worth[r * stride + c]);
          }
        return sum;
      };
      const auto gradient = [&](const train_kernel_table& by) {
        floats to = worth, tight;
        by.convolve_back({.columns = {.weights = weights.data(),
                                      .weight_stride = channels,
                                      .bias = bias.empty() ? nullptr : bias.data(),
                                      .kernel = static_cast<int>(kernel),
                                      .count = channels},
                          .x = x.data(),
                          .x_stride = channels,
                          .rows = static_cast<int>(rows),
                          .gradient = to.data(),
                          .gradient_stride = stride});
        for (std::size_t r = 0; r < rows; ++r) tight.insert(tight.end(), &to[r * stride], &to[r * stride] + channels);
        return tight;
      };
      expect_slopes(gradient(table()), x, value);
      EXPECT_EQ(gradient(table()), gradient(usual()));
    }
}

/// Rows of b, c and x, beside each other.
TEST_P(delta_gradients, follow_the_convolution_between_gates) {
  constexpr std::size_t channels = 32, stride = 3 * channels;
  for (const std::size_t kernel : {1u, 3u, 4u})
    for (const std::size_t rows : {1u, 2u, 7u}) {
      const floats weights = drawn(kernel * channels, 15), in = drawn(rows * stride, 16),
                   worth = drawn(rows * channels, 17);
      const auto value = [&](const doubles& at) {
        double sum = 0;
        for (std::size_t r = 0; r < rows; ++r)
          for (std::size_t c = 0; c < channels; ++c) {
            double total = 0;
            for (std::size_t j = 0; j < kernel; ++j) {
              if (r + j + 1 < kernel) continue;
              const double* row = &at[(r + j + 1 - kernel) * stride];
              total += static_cast<double>(weights[j * channels + c]) * row[c] * row[2 * channels + c];
            }
            sum += total * at[r * stride + channels + c] * static_cast<double>(worth[r * channels + c]);
          }
        return sum;
      };
      const auto gradient = [&](const train_kernel_table& by) {
        floats to(in.size(), 7.0f);
        by.short_convolve_back({.columns = {.weights = weights.data(),
                                            .weight_stride = channels,
                                            .kernel = static_cast<int>(kernel),
                                            .count = channels},
                                .b = in.data(),
                                .c = in.data() + channels,
                                .x = in.data() + 2 * channels,
                                .row_stride = stride,
                                .rows = static_cast<int>(rows),
                                .out_gradient = worth.data(),
                                .out_stride = channels,
                                .b_gradient = to.data(),
                                .c_gradient = to.data() + channels,
                                .x_gradient = to.data() + 2 * channels,
                                .gradient_stride = stride});
        return to;
      };
      expect_slopes(gradient(table()), in, value);
      EXPECT_EQ(gradient(table()), gradient(usual()));
    }
}

TEST_P(delta_gradients, follow_lengths_of_one) {
  constexpr std::size_t n = 48;
  const floats x = drawn(n, 7), worth = drawn(n, 8);
  const auto gradient = [&](const train_kernel_table& by) {
    floats to = worth;
    by.unit_norm_back(x.data(), n, 0.5f, 0.25f, to.data());
    return to;
  };
  expect_slopes(gradient(table()), x, [&](const doubles& in) {
    double squares = 0.5;
    for (const double each : in) squares += each * each;
    return 0.25 * dot(in.data(), worth.data(), n) / std::sqrt(squares);
  });
  EXPECT_EQ(gradient(table()), gradient(usual()));
}

TEST_P(delta_gradients, follow_what_decays_and_learns) {
  constexpr std::size_t n = 32;
  const floats x = drawn(2 * n, 9, 3), bias = drawn(n, 10), worth = drawn(2 * n, 11);  // a and b
  floats rates = drawn(n, 12), shares = x;
  for (float& rate : rates) rate = std::exp(rate);
  kernels().delta_shares(shares.data(), shares.data() + n, bias.data(), rates.data(), n);
  const auto gradient = [&](const train_kernel_table& by) {
    floats to = worth;
    by.delta_shares_back({.a = x.data(),
                          .dt_bias = bias.data(),
                          .rates = rates.data(),
                          .decays = shares.data(),
                          .betas = shares.data() + n},
                         n, to.data(), to.data() + n);
    return to;
  };
  expect_slopes(gradient(table()), x, [&](const doubles& in) {
    double sum = 0;
    for (std::size_t i = 0; i < n; ++i) {
      const double softplus = std::log1p(std::exp(in[i] + static_cast<double>(bias[i])));
      sum += static_cast<double>(worth[i]) * std::exp(-static_cast<double>(rates[i]) * softplus);
      sum += static_cast<double>(worth[n + i]) * sigmoid(in[n + i]);
    }
    return sum;
  });
  EXPECT_EQ(gradient(table()), gradient(usual()));
}

TEST_P(delta_gradients, follow_steps) {
  constexpr std::size_t n = 32;
  const floats x = drawn(n, 19, 3), bias = drawn(n, 20), worth = drawn(2 * n, 21);  // of decays and of steps
  floats rates = drawn(n, 22), decays = x, steps(n);
  for (float& rate : rates) rate = std::exp(rate);
  kernels().state_space_shares(decays.data(), steps.data(), bias.data(), rates.data(), n);
  const auto gradient = [&](const train_kernel_table& by) {
    floats to(worth.begin(), worth.begin() + n);
    by.state_space_shares_back(
        {.a = x.data(), .dt_bias = bias.data(), .rates = rates.data(), .decays = decays.data(), .betas = steps.data()},
        n, to.data(), worth.data() + n);
    return to;
  };
  expect_slopes(gradient(table()), x, [&](const doubles& in) {
    double sum = 0;
    for (std::size_t i = 0; i < n; ++i) {
      const double step = std::log1p(std::exp(in[i] + static_cast<double>(bias[i])));
      sum += static_cast<double>(worth[i]) * std::exp(-static_cast<double>(rates[i]) * step);
      sum += static_cast<double>(worth[n + i]) * step;
    }
    return sum;
  });
  EXPECT_EQ(gradient(table()), gradient(usual()));
}

TEST_P(delta_gradients, follow_gates) {
  constexpr std::size_t n = 40, padded = 48;
  const floats x = drawn(2 * n, 13), worth = drawn(padded, 14);  // what is let through, and gates
  floats gates(x.begin() + n, x.end()), opened(x.begin(), x.begin() + n);
  gates.resize(padded), opened.resize(padded);
  kernels().open_gate(gates.data(), n, opened.data());
  const auto gradient = [&](const train_kernel_table& by) {
    floats to = worth, of_gates(padded, 7.0f);
    by.open_gate_back(gates.data(), opened.data(), n, to.data(), of_gates.data());
    for (std::size_t i = n; i < padded; ++i) EXPECT_EQ(of_gates[i], 0.0f) << "padding";
    to.resize(n);
    to.insert(to.end(), of_gates.begin(), of_gates.begin() + n);
    return to;
  };
  expect_slopes(gradient(table()), x, [&](const doubles& in) {
    double sum = 0;
    for (std::size_t i = 0; i < n; ++i) sum += static_cast<double>(worth[i]) * in[i] * sigmoid(in[n + i]);
    return sum;
  });
  EXPECT_EQ(gradient(table()), gradient(usual()));
}

INSTANTIATE_TEST_SUITE_P(instruction_sets, delta_gradients, testing::Values("generic", "avx2", "avx512"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace troupe
