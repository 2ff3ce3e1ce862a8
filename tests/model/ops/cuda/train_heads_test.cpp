// Heads in training against plain sums: examples of several lengths side by side, heads that share keys, windows.
#include "model/ops/cuda/train_ops.hpp"

#include <cstring>

#include "tests/model/ops/cuda/on_device.hpp"
#include "tests/model/rounded.hpp"

namespace troupe::cuda {
namespace {

using cuda_train_heads = device_test;

constexpr float nothing = std::numeric_limits<float>::quiet_NaN();

/// Rows of two query heads that share a head of keys, in three examples.
struct heads_case {
  static constexpr int heads = 2, rows = 72;
  const int dim;
  const std::vector<segment> segments{{0, 3}, {3, 68}, {71, 1}};
  std::vector<std::int32_t> positions;
  std::int64_t stride = padded_row(heads * dim), score_stride = 128, score_step = rows * score_stride;
  device_array<segment> segments_there{segments};
  device_array<std::int32_t> positions_there;

  explicit heads_case(int dim_ = 5) : dim(dim_), positions(positions_of(segments)), positions_there(positions) {}

  static std::vector<std::int32_t> positions_of(const std::vector<segment>& segments) {
    std::vector<std::int32_t> all;
    for (const segment& s : segments)
      for (std::int32_t i = 0; i < s.rows; ++i) all.push_back(i);
    return all;
  }
  head_product product(head_shape shape, head_rows a, head_rows b, head_rows c) const {
    return {shape, segments_there.data(), 3, 68, heads, dim, a, b, c};
  }
  head_rows queries(const device_array<float>& of) const { return {of.data(), stride, dim}; }
  head_rows keys(const device_array<float>& of) const { return {of.data(), stride, dim, heads}; }
  head_rows scores(const device_array<float>& of) const { return {of.data(), score_stride, score_step}; }
  std::size_t score(int head, int query, int key) const {
    return std::size_t(head * score_step + query * score_stride + key);
  }
  /// f(head, segment, query, key) for all that see each other, rows counted within the segment.
  template <class F>
  void each(std::int64_t window, F f) const {
    for (int head = 0; head < heads; ++head)
      for (const segment& s : segments)
        for (int query = 0; query < s.rows; ++query)
          for (int key = window > 0 ? std::max(0, query + 1 - int(window)) : 0; key <= query; ++key)
            f(head, s, query, key);
  }
  /// Numbers where queries see keys, zeros in the rest of what a query's 64 keys are, nothing behind.
  std::vector<float> some_scores(random_data& random, std::int64_t window) const {
    std::vector<float> all(std::size_t(heads * score_step), nothing);
    for (int head = 0; head < heads; ++head)
      for (int row = 0; row < rows; ++row)
        std::fill_n(all.begin() + std::ptrdiff_t(score(head, row, 0)), (positions[std::size_t(row)] + 64) / 64 * 64,
                    0.0f);
    each(window, [&](int h, const segment& s, int q, int k) { all[score(h, s.first + q, k)] = random.value(); });
    return all;
  }
};

/// Rows of bf16, each where its floats began, and nothing behind them; and back again.
std::vector<float> rounded_in_place(const std::vector<float>& rows, std::int64_t stride) {
  std::vector<float> all(rows.size(), nothing);
  for (std::size_t at = 0; at < rows.size(); ++at) {
    const std::size_t row = at / std::size_t(stride) * std::size_t(stride), i = at - row;
    const std::uint16_t bits = f32_to_bf16(rows[at]);
    std::memcpy(reinterpret_cast<std::byte*>(all.data() + row) + i * sizeof bits, &bits, sizeof bits);
  }
  return all;
}
std::vector<float> widened(const std::vector<float>& rows, std::int64_t stride) {
  std::vector<float> all(rows.size());
  for (std::size_t at = 0; at < rows.size(); ++at) {
    const std::size_t row = at / std::size_t(stride) * std::size_t(stride), i = at - row;
    std::uint16_t bits = 0;
    std::memcpy(&bits, reinterpret_cast<const std::byte*>(rows.data() + row) + i * sizeof bits, sizeof bits);
    all[at] = bf16_to_f32(bits);
  }
  return all;
}

/// With numbers as they are, or rounded to bf16.
void expect_head_products(const heads_case& c, bool rounded) {
  const auto multiply = rounded ? multiply_heads_rounded : multiply_heads;
  const auto round = [&](float x) { return rounded ? as_bf16(x) : x; };
  random_data random(61);
  const auto q = random_rows(random, c.rows, c.heads * c.dim, c.stride),
             k = random_rows(random, c.rows, c.dim, c.stride);
  const auto shares = c.some_scores(random, 0);
  const device_array<float> q_there(q), k_there(k),
      shares_there(rounded ? rounded_in_place(shares, c.score_stride) : shares);
  const auto run = [&](head_shape shape, head_rows a, head_rows b, auto place, std::size_t size) {
    return in_every_order([&] {
      const device_array<float> out(std::vector<float>(size, nothing));
      const stream on;
      multiply(on, c.product(shape, a, b, place(out)));
      on.wait();
      return out.read();
    });
  };
  const auto in_rows = [&](const device_array<float>& of) { return c.queries(of); };
  const auto in_scores = [&](const device_array<float>& of) { return c.scores(of); };
  const auto scores = run(head_shape::scores, c.queries(q_there), c.keys(k_there), in_scores, shares.size());
  const auto mixed = run(head_shape::mixed, c.scores(shares_there), c.keys(k_there), in_rows, q.size());
  const auto given = run(head_shape::given, c.scores(shares_there), c.queries(q_there), in_rows, q.size());
  std::vector<double> mixed_sums(q.size()), given_sums(q.size());
  c.each(0, [&](int h, const segment& s, int query, int key) {
    const auto row = std::size_t((s.first + query) * c.stride), other = std::size_t((s.first + key) * c.stride);
    double sum = 0;
    for (int d = 0; d < c.dim; ++d) {
      const auto at = std::size_t(h * c.dim + d);
      const double share = round(shares[c.score(h, s.first + query, key)]);
      const double own_q = round(q[row + at]), own_k = round(k[other + std::size_t(d)]);
      sum += own_q * own_k;
      mixed_sums[row + at] += share * own_k;
      given_sums[other + at] += share * own_q;
    }
    ASSERT_NEAR(scores[c.score(h, s.first + query, key)], sum, 1e-4);
  });
  for (int row = 0; row < c.rows; ++row)
    for (int i = 0; i < c.heads * c.dim; ++i) {
      const auto at = std::size_t(row * c.stride + i);
      ASSERT_NEAR(mixed[at], mixed_sums[at], 1e-4);
      ASSERT_NEAR(given[at], given_sums[at], 1e-4);
    }
}

TEST_F(cuda_train_heads, multiply_within_their_examples) {
  expect_head_products(heads_case(), false);
}

TEST_F(cuda_train_heads, multiply_within_their_examples_rounded_to_bf16) {
  for (const int dim : {5, 8, 64, 132}) {
    SCOPED_TRACE(dim);
    expect_head_products(heads_case(dim), true);
  }
}

/// Scores are capped before where there is a cap.
void expect_softmax(bool rounded, double off, float cap = 0) {
  random_data random(62);
  const heads_case c;
  for (const std::int64_t window : {0, 20}) {
    const auto scores = c.some_scores(random, window), gradients = c.some_scores(random, window);
    const auto run = [&] {
      const device_array<float> shares(scores), back(gradients), slopes(scores);
      const stream on;
      softmax_args args{c.rows, c.heads, c.positions_there.data(), window, 0.5f, c.scores(shares), c.scores(back)};
      if (cap > 0) {
        args.slopes = c.scores(slopes);
        cap_scores(on, args, cap);
        args.factor = 1;
      }
      (rounded ? softmax_rounded : softmax)(on, args);
      (rounded ? softmax_back_rounded : softmax_back)(on, args);
      on.wait();
      const auto as_floats = [&](const std::vector<float>& made) {
        return rounded ? widened(made, c.score_stride) : made;
      };
      auto all = as_floats(shares.read());
      const auto second = as_floats(back.read());
      all.insert(all.end(), second.begin(), second.end());
      return all;
    };
    const auto got = in_every_order(run);
    std::vector<double> sums(std::size_t(c.heads * c.rows)), means(sums.size());
    const auto row_of = [&](int h, const segment& s, int q) { return std::size_t(h * c.rows + s.first + q); };
    const auto tangent = [&](std::size_t at) { return std::tanh(0.5 * double(scores[at]) / double(cap)); };
    const auto power = [&](std::size_t at) {
      return std::exp(cap > 0 ? double(cap) * tangent(at) : 0.5 * double(scores[at]));
    };
    c.each(window, [&](int h, const segment& s, int q, int k) {
      sums[row_of(h, s, q)] += power(c.score(h, s.first + q, k));
      means[row_of(h, s, q)] += power(c.score(h, s.first + q, k)) * gradients[c.score(h, s.first + q, k)];
    });
    std::vector<double> shares(scores.size()), back(scores.size());
    c.each(window, [&](int h, const segment& s, int q, int k) {
      const std::size_t at = c.score(h, s.first + q, k), row = row_of(h, s, q);
      shares[at] = power(at) / sums[row];
      const double slope = cap > 0 ? 0.5 * (1 - tangent(at) * tangent(at)) : 0.5;
      back[at] = slope * shares[at] * (gradients[at] - means[row] / sums[row]);
    });
    for (std::size_t at = 0; at < scores.size(); ++at) {
      if (std::isnan(scores[at])) continue;
      ASSERT_NEAR(got[at], shares[at], off);
      ASSERT_NEAR(got[scores.size() + at], back[at], off);
    }
  }
}

TEST_F(cuda_train_heads, softmax_and_its_gradient_see_what_the_window_shows) {
  expect_softmax(false, 1e-6);
}

TEST_F(cuda_train_heads, softmax_and_its_gradient_are_rounded_in_place) {
  expect_softmax(true, 5e-3);
}

TEST_F(cuda_train_heads, softmax_of_capped_scores_and_its_gradient) {
  expect_softmax(false, 1e-6, 0.25f);
  expect_softmax(true, 5e-3, 0.25f);
}

/// So many pairs of a head of 10, which is normalized before; the gradient that comes back is the slope in some
/// direction.
void expect_turned(int pairs) {
  constexpr int rows = 6, heads = 3, dim = 10;
  random_data random(63);
  const std::int64_t stride = padded_row(heads * dim);
  const auto x = random_rows(random, rows, heads * dim, stride), dy = random_rows(random, rows, heads * dim, stride);
  std::vector<float> norm, cosines, sines;
  for (int i = 0; i < dim; ++i) norm.push_back(1 + 0.1f * random.value());
  for (int i = 0; i < 4 * pairs; ++i) cosines.push_back(std::cos(float(i))), sines.push_back(std::sin(float(i)));
  const device_array<float> norm_there(norm), cosines_there(cosines), sines_there(sines), x_there(x);
  const device_array<std::int32_t> positions(std::vector<std::int32_t>{0, 1, 2, 0, 1, 3});
  const std::vector<std::int32_t> position_of{0, 1, 2, 0, 1, 3};
  for (const bool normed : {false, true}) {
    turn_args args{rows,
                   heads,
                   dim,
                   positions.data(),
                   {x_there.data(), stride},
                   normed ? norm_there.data() : nullptr,
                   1e-5f,
                   {cosines_there.data(), sines_there.data(), pairs},
                   {}};
    const auto run = [&](const std::vector<float>& out, auto op) {
      return in_every_order([&] {
        const device_array<float> there(out);
        const stream on;
        args.out = {there.data(), stride};
        op(on, args);
        on.wait();
        return there.read();
      });
    };
    const auto got = run(x, turn_heads), back = run(dy, turn_heads_back);
    /// What the op makes of a head, in doubles.
    const auto turned = [&](std::vector<double> v, int row) {
      double squares = 0;
      for (const double e : v) squares += e * e;
      for (int i = 0; i < dim && normed; ++i)
        v[std::size_t(i)] *= norm[std::size_t(i)] / std::sqrt(squares / dim + 1e-5);
      std::vector<double> out(v);
      for (int i = 0; i < pairs; ++i) {
        const auto angle = std::size_t(position_of[std::size_t(row)] * pairs + i), low = std::size_t(i),
                   high = low + std::size_t(pairs);
        out[low] = v[low] * cosines[angle] - v[high] * sines[angle];
        out[high] = v[high] * cosines[angle] + v[low] * sines[angle];
      }
      return out;
    };
    for (int row = 0; row < rows; ++row)
      for (int head = 0; head < heads; ++head) {
        const auto at = std::size_t(row * stride + head * dim);
        std::vector<double> v(x.begin() + std::ptrdiff_t(at), x.begin() + std::ptrdiff_t(at) + dim);
        const auto expected = turned(v, row);
        for (std::size_t i = 0; i < dim; ++i) {
          ASSERT_NEAR(got[at + i], expected[i], 1e-5);
          constexpr double step = 1e-4;
          std::vector<double> more(v), less(v);
          more[i] += step, less[i] -= step;
          const auto above = turned(more, row), below = turned(less, row);
          double slope = 0;
          for (std::size_t j = 0; j < dim; ++j) slope += (above[j] - below[j]) / (2 * step) * dy[at + j];
          ASSERT_NEAR(back[at + i], slope, 1e-4);
        }
      }
  }
}

TEST_F(cuda_train_heads, are_turned_there_and_back) {
  expect_turned(5);
}

TEST_F(cuda_train_heads, are_turned_in_part_or_not_at_all) {
  for (const int pairs : {3, 0}) expect_turned(pairs);
}

}  // namespace
}  // namespace troupe::cuda
