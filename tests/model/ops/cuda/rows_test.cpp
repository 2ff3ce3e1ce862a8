// Ops on rows against the host's kernels.
#include "base/half.hpp"
#include "tests/model/ops/cuda/on_device.hpp"

namespace troupe::cuda {
namespace {

using cuda_rows = device_test;
const std::int64_t lengths[] = {1, 31, 64, 65, 172, 768, 1000};

template <class T>
std::vector<T> first(const std::vector<T>& all, std::int64_t count) {
  return {all.begin(), all.begin() + count};
}

/// What the device made of some rows, all parts one after another.
struct codes_on_device {
  int rows;
  std::int64_t padded;
  device_array<std::int8_t> q;
  device_array<float> scales;
  device_array<std::int32_t> sums, group_sums;
  device_array<std::uint16_t> bf16;

  codes_on_device(int rows_, std::int64_t n)
      : rows(rows_),
        padded(padded_row(n)),
        q(std::size_t(rows * padded)),
        scales(std::size_t(rows)),
        sums(std::size_t(rows)),
        group_sums(std::size_t(rows * padded / 32)),
        bf16(std::size_t(rows * padded)) {}
  row_codes view() const { return {q.data(), scales.data(), sums.data(), group_sums.data(), bf16.data()}; }

  /// A row's integers are the host's, and its bf16 the host's roundings.
  void expect_codes_of(const std::vector<float>& x, std::int64_t n, std::int64_t stride) const {
    const auto q_ = q.read();
    const auto scales_ = scales.read();
    const auto sums_ = sums.read(), groups_ = group_sums.read();
    const auto bf16_ = bf16.read();
    for (int row = 0; row < rows; ++row) {
      aligned_buffer<float> one(static_cast<std::size_t>(padded));
      std::copy_n(x.begin() + row * stride, n, one.data());
      quantized_rows on_host(kernels(), 1, n);
      on_host.begin(1, n);
      on_host.put(0, one.data());
      const quantized_view& expected = on_host.view();
      ASSERT_TRUE(std::equal(expected.q, expected.q + padded, q_.begin() + row * padded)) << n;
      ASSERT_TRUE(
          std::equal(expected.group_sums, expected.group_sums + padded / 32, groups_.begin() + row * padded / 32))
          << n;
      ASSERT_EQ(*expected.scales, scales_[std::size_t(row)]);
      ASSERT_EQ(*expected.sums, sums_[std::size_t(row)]);
      for (std::int64_t i = 0; i < padded; ++i)
        ASSERT_EQ(bf16_[std::size_t(row * padded + i)], f32_to_bf16(one[std::size_t(i)]));
    }
  }
};

TEST_F(cuda_rows, are_encoded_as_on_the_host_to_the_bit) {
  random_data random(1);
  for (const std::int64_t n : lengths) {
    const std::int64_t stride = padded_row(n) + 16;
    auto x = random_rows(random, 3, n, stride);
    std::fill_n(x.begin() + stride, n, 0.0f);  // a row of zeros has no scale
    const device_array<float> on_device(x);
    const codes_on_device codes(3, n);
    in_every_order([&] {
      const stream on;
      encode(on, {on_device.data(), stride}, 3, n, codes.view());
      on.wait();
      return codes.q.read();
    });
    codes.expect_codes_of(x, n, stride);
  }
}

/// One of every way that a block holds a row.
const std::int64_t wide_lengths[] = {1030, 4099, 8250, 14400, 32900};

TEST_F(cuda_rows, are_encoded_whatever_their_width) {
  random_data random(7);
  for (const std::int64_t n : wide_lengths) {
    const auto x = random_rows(random, 2, n, padded_row(n));
    const device_array<float> on_device(x);
    const codes_on_device codes(2, n);
    const stream on;
    encode(on, {on_device.data(), padded_row(n)}, 2, n, codes.view());
    on.wait();
    codes.expect_codes_of(x, n, padded_row(n));
    const codes_on_device alone(2, n);  // without a largest element to be found
    encode(on, {on_device.data(), padded_row(n)}, 2, n, {.bf16 = alone.bf16.data()});
    on.wait();
    EXPECT_EQ(alone.bf16.read(), codes.bf16.read());
  }
}

/// Runs an op of rows in every order, checks the codes that it made on the way, and returns its rows.
template <class Op>
std::vector<float> rows_of(int rows, std::int64_t n, Op op) {
  const std::int64_t stride = padded_row(n);
  const device_array<float> out(static_cast<std::size_t>(rows * stride));
  const codes_on_device codes(rows, n);
  const auto made = in_every_order([&] {
    const stream on;
    op(on, float_rows{out.data(), stride}, codes.view());
    on.wait();
    return out.read();
  });
  codes.expect_codes_of(made, n, stride);
  return made;
}

TEST_F(cuda_rows, norms_equal_the_hosts) {
  random_data random(2);
  for (const std::int64_t n : {1, 65, 768}) {
    const std::int64_t stride = padded_row(n);
    const auto x = random.rows(4, n, stride), weight = random.rows(1, n, stride), bias = random.rows(1, n, stride);
    const device_array<float> x_(x.data(), std::size_t(4 * stride)), w_(weight), b_(bias);
    const device_array<std::int32_t> gather(std::vector<std::int32_t>{3, 0, 3});
    for (const bool rms : {true, false})
      for (const bool gathered : {true, false}) {
        norm_args a{.rows = 3, .n = n, .x = {x_.data(), stride}, .weight = w_.data(), .bias = b_.data(), .eps = 1e-5f};
        if (gathered) a.gather = gather.data();
        const auto got = rows_of(3, n, [&](const stream& on, float_rows out, const row_codes& codes) {
          a.out = out;
          a.codes = codes;
          (rms ? rms_norm : layer_norm)(on, a);
        });
        for (int row = 0; row < 3; ++row) {
          const float* from = x.data() + (gathered && row != 1 ? 3 : gathered ? 0 : row) * stride;
          aligned_buffer<float> expected(static_cast<std::size_t>(stride));
          if (rms)
            kernels().rms_norm(from, weight.data(), n, 1e-5f, expected.data());
          else
            kernels().layer_norm(from, weight.data(), bias.data(), n, 1e-5f, expected.data());
          expect_near(got.data() + row * stride, expected, std::size_t(n), 1e-5);
        }
      }
  }
}

TEST_F(cuda_rows, norms_are_added_to_what_is_there) {
  random_data random(10);
  for (const std::int64_t n : {std::int64_t{65}, std::int64_t{768}, wide_lengths[1]}) {
    const std::int64_t stride = padded_row(n);
    const device_array<float> x(random_rows(random, 2, n, stride)), weight(random_rows(random, 1, n, stride)),
        bias(random_rows(random, 1, n, stride));
    const auto before = random_rows(random, 2, n, stride);
    norm_args a{.rows = 2, .n = n, .x = {x.data(), stride}, .weight = weight.data(), .bias = bias.data(), .eps = 1e-5f};
    for (const auto norm : {rms_norm, layer_norm}) {
      a.before = {};
      const auto made = rows_of(2, n, [&](const stream& on, float_rows out, const row_codes& codes) {
        a.out = out;
        a.codes = codes;
        norm(on, a);
      });
      const auto sum = in_every_order([&] {
        const device_array<float> out(before);
        a.out = a.before = {out.data(), stride};
        const stream on;
        norm(on, a);
        on.wait();
        return out.read();
      });
      for (std::int64_t row = 0; row < 2; ++row)
        for (std::int64_t i = 0; i < n; ++i) {
          const auto at = std::size_t(row * stride + i);
          ASSERT_EQ(sum[at], before[at] + made[at]) << n << " " << row << " " << i;
        }
    }
  }
}

TEST_F(cuda_rows, norms_and_activations_of_wide_rows_equal_the_hosts) {
  random_data random(8);
  for (const std::int64_t n : wide_lengths) {
    const std::int64_t stride = padded_row(n);
    const auto x = random.rows(1, n, stride), y = random.rows(1, n, stride), z = random.rows(1, n, stride);
    const device_array<float> x_(x), y_(y), z_(z);
    const norm_args norm{.rows = 1, .n = n, .x = {x_.data(), stride}, .weight = y_.data(), .bias = z_.data()};
    const activation_args activation{.rows = 1, .n = n, .gate = {y_.data(), stride}, .x = {x_.data(), stride}};
    const auto expect_equal = [&](auto op, auto args, const auto& on_host) {
      const auto got = rows_of(1, n, [&](const stream& on, float_rows out, const row_codes& codes) {
        args.out = out;
        args.codes = codes;
        op(on, args);
      });
      aligned_buffer<float> expected(static_cast<std::size_t>(stride));
      on_host(expected.data());
      expect_near(got, expected, std::size_t(n), 1e-5);
    };
    const auto& host = kernels();
    expect_equal(rms_norm, norm, [&](float* to) { host.rms_norm(x.data(), y.data(), n, 0, to); });
    expect_equal(layer_norm, norm, [&](float* to) { host.layer_norm(x.data(), y.data(), z.data(), n, 0, to); });
    expect_equal(swiglu, activation, [&](float* to) { host.swiglu(y.data(), x.data(), n, to); });
    expect_equal(geglu, activation, [&](float* to) { host.geglu(y.data(), x.data(), n, to); });
    expect_equal(gelu_tanh, activation, [&](float* to) { host.gelu_tanh(x.data(), n, to); });
  }
}

TEST_F(cuda_rows, codes_can_be_all_that_is_made) {
  random_data random(9);
  constexpr std::int64_t n = 5001, stride = padded_row(n);
  const auto x = random_rows(random, 2, n, stride);
  const device_array<float> x_(x), weight(random_rows(random, 1, n, stride)), out(2 * stride);
  const codes_on_device with(2, n), without(2, n);
  const auto expect_the_same = [&](auto op, auto args) {
    const stream on;
    args.out = {out.data(), stride};
    args.codes = with.view();
    op(on, args);
    args.out = {};
    args.codes = without.view();
    op(on, args);
    on.wait();
    EXPECT_EQ(with.q.read(), without.q.read());
    EXPECT_EQ(with.bf16.read(), without.bf16.read());
    const codes_on_device bf16(2, n);
    args.codes = {.bf16 = bf16.bf16.data()};
    op(on, args);
    on.wait();
    EXPECT_EQ(with.bf16.read(), bf16.bf16.read());
  };
  const float_rows rows{x_.data(), stride};
  expect_the_same(rms_norm, norm_args{.rows = 2, .n = n, .x = rows, .weight = weight.data()});
  expect_the_same(swiglu, activation_args{.rows = 2, .n = n, .gate = rows, .x = rows});
  expect_the_same(geglu, activation_args{.rows = 2, .n = n, .gate = rows, .x = rows});
}

TEST_F(cuda_rows, activations_equal_the_hosts_over_the_whole_range) {
  constexpr std::int64_t n = 1000, stride = 1024;
  aligned_buffer<float> gate(stride), up(stride), swiglu_(stride), geglu_(stride), gelu_(stride);
  for (std::size_t i = 0; i < n; ++i) gate[i] = 0.237f * (float(i) - 500), up[i] = 1.5f - 0.003f * float(i);
  kernels().swiglu(gate.data(), up.data(), n, swiglu_.data());
  kernels().geglu(gate.data(), up.data(), n, geglu_.data());
  kernels().gelu_tanh(gate.data(), n, gelu_.data());
  const device_array<float> g(gate), u(up);
  const auto silu = rows_of(1, n, [&](const stream& on, float_rows out, const row_codes& codes) {
    swiglu(on, {1, n, {g.data(), stride}, {u.data(), stride}, out, codes});
  });
  const auto gated = rows_of(1, n, [&](const stream& on, float_rows out, const row_codes& codes) {
    geglu(on, {1, n, {g.data(), stride}, {u.data(), stride}, out, codes});
  });
  const auto gelu = rows_of(1, n, [&](const stream& on, float_rows out, const row_codes& codes) {
    gelu_tanh(on, {1, n, {}, {g.data(), stride}, out, codes});
  });
  for (std::size_t i = 0; i < n; ++i) {
    EXPECT_NEAR(silu[i], swiglu_[i], 1e-6 + 1e-6 * std::fabs(swiglu_[i]));
    EXPECT_NEAR(gated[i], geglu_[i], 1e-6 + 1e-6 * std::fabs(geglu_[i]));
    EXPECT_NEAR(gelu[i], gelu_[i], 1e-6 + 1e-6 * std::fabs(gelu_[i]));
  }
}

TEST_F(cuda_rows, an_embedding_is_the_matrix_row_to_the_bit_for_every_scheme) {
  random_data random(3);
  for (const scheme kind : all_schemes) {
    constexpr std::int64_t n = 100, stride = padded_row(n), outs = 37;
    const random_matrix table(random, kind, outs, n);
    const device_matrix matrix(table);
    const auto learned = random.rows(5, n, stride);
    const device_array<float> learned_(learned), out(std::size_t(4 * stride));
    const std::vector<std::int32_t> tokens{36, 0, -1, 17}, positions{4, 1, 0, 0};
    const device_array<std::int32_t> tokens_(tokens), positions_(positions);
    for (const bool with_learned : {false, true}) {
      const float factor = with_learned ? 1.0f : 5.6568542f;
      embed_args a{.table = matrix.view, .factor = factor, .rows = 4, .tokens = tokens_.data()};
      if (with_learned) a.learned = learned_.data(), a.learned_stride = stride, a.positions = positions_.data();
      a.out = {out.data(), stride};
      const auto got = in_every_order([&] {
        const stream on;
        embed(on, a);
        on.wait();
        return out.read();
      });
      for (std::size_t row = 0; row < 4; ++row) {
        std::vector<float> expected(n);
        if (tokens[row] >= 0) unpack_row(table.view, tokens[row], expected.data());
        for (float& value : expected) value *= factor;
        for (std::size_t i = 0; i < n && with_learned && tokens[row] >= 0; ++i)
          expected[i] += learned[std::size_t(positions[row]) * stride + i];
        ASSERT_EQ(std::memcmp(expected.data(), got.data() + row * stride, n * 4), 0) << name_of(kind) << " row " << row;
      }
    }
  }
}

TEST_F(cuda_rows, logits_are_capped_and_know_their_slopes) {
  random_data random(6);
  constexpr std::int64_t n = 301, stride = 304;
  const float factor = 0.3f, cap = 0.25f;
  const auto logits = random_rows(random, 2, n, stride);
  const auto got = in_every_order([&] {
    const device_array<float> on_device(logits), slopes(logits.size());
    const stream on;
    finish_logits(on, {2, n, {on_device.data(), stride}, factor, cap, {slopes.data(), stride}});
    on.wait();
    auto all = on_device.read();
    const auto second = slopes.read();
    all.insert(all.end(), second.begin(), second.end());
    return all;
  });
  for (std::size_t i = 0; i < logits.size(); ++i) {
    if (i % stride >= n) continue;
    const double tangent = std::tanh(double(factor) * double(logits[i]) / double(cap));
    EXPECT_NEAR(got[i], double(cap) * tangent, 1e-6);
    EXPECT_NEAR(got[logits.size() + i], double(factor) * (1 - tangent * tangent), 1e-6);
  }
}

TEST_F(cuda_rows, logits_are_multiplied_by_a_factor) {
  random_data random(5);
  for (const std::int64_t n : {1, 300, 1029}) {
    const std::int64_t stride = rounded_up(n, 4) + 4;
    const auto logits = random_rows(random, 3, n, stride);
    std::vector<float> expected = logits;
    for (std::int64_t i = 0; i < 3 * stride; ++i)
      if (i % stride < n) expected[std::size_t(i)] *= 0.3f;
    const auto got = in_every_order([&] {
      const device_array<float> on_device(logits);
      const stream on;
      finish_logits(on, {.rows = 3, .n = n, .logits = {on_device.data(), stride}, .factor = 0.3f});
      on.wait();
      return on_device.read();
    });
    EXPECT_TRUE(same_bits(got, expected));
  }
}

/// In every order.
std::vector<std::int32_t> largest_of(const std::vector<float>& logits, int rows, std::int64_t n, std::int64_t stride) {
  const device_array<float> on_device(logits), scratch(std::size_t(argmax_scratch_floats(rows)));
  const device_array<std::int32_t> tokens(static_cast<std::size_t>(rows));
  return in_every_order([&] {
    const stream on;
    argmax(on, {rows, n, {on_device.data(), stride}, tokens.data(), scratch.data()});
    on.wait();
    return tokens.read();
  });
}

TEST_F(cuda_rows, argmax_finds_the_first_of_the_largest) {
  random_data random(4);
  for (const std::int64_t n : {1, 100, 777, 40000}) {
    constexpr int rows = 3;
    const std::int64_t stride = rounded_up(n + 5, 4);
    auto logits = random_rows(random, rows, n, stride);
    std::vector<std::int32_t> expected;
    for (int row = 0; row < rows; ++row) {
      const auto begin = logits.begin() + row * stride;
      const auto best = std::max_element(begin, begin + n);
      *(begin + n - 1) = *best;  // an equal one that comes later
      expected.push_back(static_cast<std::int32_t>(std::max_element(begin, begin + n) - begin));
    }
    EXPECT_EQ(largest_of(logits, rows, n, stride), expected);
  }
}

TEST_F(cuda_rows, argmax_passes_over_what_is_not_a_number_as_the_host_does) {
  constexpr float nothing = std::numeric_limits<float>::quiet_NaN(), infinite = std::numeric_limits<float>::infinity();
  constexpr int n = 300;
  const std::vector<std::vector<std::pair<int, float>>> rows{{},
                                                             {{130, -infinite}, {140, -infinite}},
                                                             {{299, -5.0f}, {17, -infinite}},
                                                             {{70, infinite}, {69, infinite}},
                                                             {{200, 0.0f}, {201, -0.0f}, {199, -0.0f}}};
  std::vector<float> logits(rows.size() * n, nothing);
  const std::vector<std::int32_t> expected{0, 130, 299, 69, 199};
  for (std::size_t row = 0; row < rows.size(); ++row)
    for (const auto& [place, logit] : rows[row]) logits[row * n + static_cast<std::size_t>(place)] = logit;
  EXPECT_EQ(largest_of(logits, static_cast<int>(rows.size()), n, n), expected);
}

}  // namespace
}  // namespace troupe::cuda
