// What comes back through rows against slopes of the ops that it comes back through, and dropout and the loss.
#include <functional>

#include "base/philox.hpp"
#include "model/ops/cuda/train_ops.hpp"
#include "tests/model/ops/cuda/on_device.hpp"

namespace troupe::cuda {
namespace {

using cuda_train_rows = device_test;
using vector = std::vector<double>;

constexpr int rows = 3;
const std::int64_t row_lengths[] = {1, 65, 300};

/// The slope of `of` along dy in each element of x.
vector slopes(const vector& x, const float* dy, const std::function<vector(const vector&)>& of) {
  constexpr double step = 1e-5;
  vector all(x.size()), moved(x);
  for (std::size_t i = 0; i < x.size(); ++i) {
    moved[i] = x[i] + step;
    const vector above = of(moved);
    moved[i] = x[i] - step;
    const vector below = of(moved);
    moved[i] = x[i];
    for (std::size_t j = 0; j < above.size(); ++j) all[i] += (above[j] - below[j]) / (2 * step) * dy[j];
  }
  return all;
}

vector row_of(const std::vector<float>& all, int row, std::int64_t n, std::int64_t stride) {
  const auto at = all.begin() + row * stride;
  return {at, at + n};
}

vector normed(const vector& x, const std::vector<float>& weight, bool centered) {
  double mean = 0, squares = 0;
  for (const double v : x) mean += centered ? v / double(x.size()) : 0;
  for (const double v : x) squares += (v - mean) * (v - mean);
  vector out;
  for (std::size_t i = 0; i < x.size(); ++i)
    out.push_back((x[i] - mean) / std::sqrt(squares / double(x.size()) + 1e-3) * weight[i]);
  return out;
}

TEST_F(cuda_train_rows, norms_give_the_slope_to_the_rows_they_were_made_of) {
  random_data random(71);
  const std::vector<std::int32_t> gather{4, 0, 3};
  const device_array<std::int32_t> gather_there(gather);
  for (const std::int64_t n : row_lengths)
    for (const bool centered : {false, true}) {
      const std::int64_t stride = padded_row(n);
      const auto x = random_rows(random, 5, n, stride), dy = random_rows(random, rows, n, stride),
                 before = random_rows(random, 5, n, stride), weight = random_rows(random, 1, n, n);
      const device_array<float> x_there(x), dy_there(dy), weight_there(weight);
      const auto got = in_every_order([&] {
        const device_array<float> dx(before);
        const stream on;
        (centered ? layer_norm_back : rms_norm_back)(on, {rows,
                                                          n,
                                                          {x_there.data(), stride},
                                                          gather_there.data(),
                                                          weight_there.data(),
                                                          1e-3f,
                                                          {dy_there.data(), stride},
                                                          {dx.data(), stride}});
        on.wait();
        return dx.read();
      });
      for (int row = 0; row < rows; ++row) {
        const int from = gather[std::size_t(row)];
        const auto expected = slopes(row_of(x, from, n, stride), dy.data() + row * stride,
                                     [&](const vector& v) { return normed(v, weight, centered); });
        for (std::int64_t i = 0; i < n; ++i) {
          const auto at = std::size_t(from * stride + i);
          ASSERT_NEAR(got[at], before[at] + expected[std::size_t(i)], 1e-3) << n << " " << centered;
        }
      }
      EXPECT_EQ(got[std::size_t(stride)], before[std::size_t(stride)]);  // nobody's
    }
}

double silu_of(double v) {
  return v / (1 + std::exp(-v));
}

double gelu_of(double v) {
  return 0.5 * v * (1 + std::tanh(std::sqrt(2 / M_PI) * (v + 0.044715 * v * v * v)));
}

TEST_F(cuda_train_rows, activations_become_their_own_gradients) {
  const struct {
    void (*back)(const stream&, const activation_back_args&);
    double (*value)(double);
    bool gated;
  } activations[] = {{swiglu_back, silu_of, true}, {geglu_back, gelu_of, true}, {gelu_back, gelu_of, false}};
  random_data random(72);
  for (const std::int64_t n : row_lengths) {
    const std::int64_t stride = padded_row(n);
    const auto gate = random_rows(random, rows, n, stride), x = random_rows(random, rows, n, stride),
               dy = random_rows(random, rows, n, stride);
    const device_array<float> dy_there(dy);
    for (const auto& [back, value, gated] : activations) {
      const auto got = in_every_order([&, back = back] {
        const device_array<float> gate_there(gate), x_there(x);
        const stream on;
        back(on, {rows, n, {dy_there.data(), stride}, {gate_there.data(), stride}, {x_there.data(), stride}});
        on.wait();
        auto both = x_there.read();
        const auto second = gate_there.read();
        both.insert(both.end(), second.begin(), second.end());
        return both;
      });
      for (int row = 0; row < rows; ++row)
        for (std::int64_t i = 0; i < n; ++i) {
          const auto at = std::size_t(row * stride + i);
          const auto slope = [&, value = value](double v) {
            return (value(v + 1e-5) - value(v - 1e-5)) / 2e-5 * dy[at];
          };
          ASSERT_NEAR(got[at], gated ? value(gate[at]) * dy[at] : slope(x[at]), 1e-4);
          ASSERT_NEAR(got[x.size() + at], gated ? slope(gate[at]) * x[at] : double(gate[at]), 1e-4);
        }
    }
  }
}

TEST_F(cuda_train_rows, are_dropped_by_the_counter) {
  random_data random(73);
  constexpr dropout_key mask{0.3f, 0x123456789abcdefull, 7, 4};
  for (const std::int64_t n : {std::int64_t{1}, std::int64_t{70}, std::int64_t{2100}}) {
    const std::int64_t stride = padded_row(n);
    const auto x = random_rows(random, rows, n, stride), before = random_rows(random, rows, n, stride);
    const device_array<float> x_there(x);
    for (const into how : {into::set, into::add}) {
      const auto got = in_every_order([&] {
        const device_array<float> out(before);
        const stream on;
        drop(on, {mask, rows, n, {x_there.data(), stride}, {out.data(), stride}, how});
        on.wait();
        return out.read();
      });
      for (int row = 0; row < rows; ++row)
        for (std::int64_t i = 0; i < n; ++i) {
          const auto bits = philox({std::uint32_t(i / 8), std::uint32_t(row), 7, 5}, {0x89abcdef, 0x1234567});
          const bool kept = (bits[std::size_t(i % 8 / 2)] >> (i % 2 * 16) & 0xffff) >= std::uint32_t(0.3f * 65536.0f);
          const auto at = std::size_t(row * stride + i);
          const float value = kept ? x[at] * (1.0f / (1.0f - 0.3f)) : 0.0f;
          ASSERT_EQ(got[at], how == into::add ? before[at] + value : value) << row << " " << i;
        }
    }
  }
}

TEST_F(cuda_train_rows, logits_become_the_losss_gradient) {
  random_data random(74);
  for (const std::int64_t n : {std::int64_t{2}, std::int64_t{97}, std::int64_t{1000}}) {
    const std::int64_t stride = padded_row(n);
    auto logits = random_rows(random, rows, n, stride);
    const std::vector<std::int32_t> targets{0, std::int32_t(n - 1), std::int32_t(n / 2)};
    logits[0] = 9;  // the first row's target leads, and of two equals in the second row the other one
    logits[std::size_t(stride)] = logits[std::size_t(stride + n - 1)] = 9;
    const device_array<std::int32_t> targets_there(targets);
    const auto run = [&](auto read) {
      return in_every_order([&] {
        const device_array<float> there(logits);
        const device_array<cross_entropy_result> results(rows);
        const stream on;
        cross_entropy(on, {rows, n, {there.data(), stride}, targets_there.data(), 0.25f, results.data()});
        on.wait();
        return read(there, results);
      });
    };
    const auto gradients = run([](const auto& there, const auto&) { return there.read(); });
    const auto results = run([](const auto&, const auto& made) { return made.read(); });
    EXPECT_TRUE(results[0].leads);
    EXPECT_FALSE(results[1].leads);
    for (int row = 0; row < rows; ++row) {
      const vector x = row_of(logits, row, n, stride);
      const auto target = std::size_t(targets[std::size_t(row)]);
      double sum = 0;
      for (const double v : x) sum += std::exp(v);
      const cross_entropy_result& r = results[std::size_t(row)];
      EXPECT_NEAR(std::log(double(r.sum)) + r.most - r.target, std::log(sum) - x[target], 1e-5);
      for (std::size_t i = 0; i < x.size(); ++i)
        ASSERT_NEAR(gradients[std::size_t(row * stride) + i], 0.25 * (std::exp(x[i]) / sum - (i == target ? 1 : 0)),
                    1e-6);
    }
  }
}

}  // namespace
}  // namespace troupe::cuda
