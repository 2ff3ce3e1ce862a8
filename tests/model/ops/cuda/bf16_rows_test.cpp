// Rows and weights as a library for bf16 wants them, and the library.
#include "model/ops/cuda/bf16_rows.hpp"

#include <algorithm>
#include <optional>

#include "base/half.hpp"
#include "tests/model/ops/cuda/on_device.hpp"
#include "tests/model/rounded.hpp"

namespace troupe::cuda {
namespace {

using cuda_bf16_rows = device_test;
constexpr std::uint16_t untouched = 0x7fc1;

/// What `put` leaves in rows of so many numbers.
template <class Put>
std::vector<std::uint16_t> rows_after(std::int64_t rows, std::int64_t stride, Put put) {
  return in_every_order([&] {
    const device_array<std::uint16_t> there(std::vector<std::uint16_t>(std::size_t(rows * stride), untouched));
    const stream on;
    put(on, bf16_rows{there.data(), stride});
    on.wait();
    return there.read();
  });
}

TEST_F(cuda_bf16_rows, are_rounded_and_padded_with_zeros_and_nothing_else_is_touched) {
  random_data random(61);
  for (const std::int64_t n : {1, 8, 37, 64}) {
    const std::int64_t rows = 5, padded = rounded_up(n, 16), stride = padded + 24, x_stride = padded_row(n);
    const auto x = random_rows(random, rows, n, x_stride);
    const device_array<float> x_there(x);
    const auto got = rows_after(rows, stride, [&](const stream& on, bf16_rows to) {
      round_rows(on, {x_there.data(), x_stride}, rows, n, padded, to.from(0, 8), 0.75f);
    });
    for (std::int64_t row = 0; row < rows; ++row)
      for (std::int64_t i = 0; i < stride; ++i) {
        const std::int64_t at = i - 8;
        const std::uint16_t expected = at < 0 || at >= padded ? untouched
                                       : at >= n              ? std::uint16_t{0}
                                                 : f32_to_bf16(0.75f * x[std::size_t(row * x_stride + at)]);
        ASSERT_EQ(got[std::size_t(row * stride + i)], expected) << row << " " << i << " of " << n;
      }
  }
}

TEST_F(cuda_bf16_rows, are_the_weights_of_every_scheme) {
  random_data random(62);
  for (const scheme kind : all_schemes) {
    const std::int64_t outs = 37, ins = 70, stride = padded_row(ins) + 8;
    const random_matrix host(random, kind, outs, ins);
    const device_matrix there(host);
    const auto got = rows_after(padded_outs(outs) + 1, stride,
                                [&](const stream& on, bf16_rows to) { unpack_bf16(on, there.view, to); });
    std::vector<float> row(std::size_t(padded_row(ins)));
    for (std::int64_t out = 0; out <= padded_outs(outs); ++out) {
      if (out < outs) unpack_row(host.view, out, row.data());
      for (std::int64_t i = 0; i < stride; ++i) {
        const bool is_outside = out == padded_outs(outs) || i >= padded_row(ins);
        const float value = out < outs && i < ins ? row[std::size_t(i)] : 0.0f;
        const std::uint16_t bits = got[std::size_t(out * stride + i)];
        if (is_outside)
          ASSERT_EQ(bits, untouched);
        else
          ASSERT_EQ(bf16_to_f32(bits), bf16_to_f32(f32_to_bf16(value))) << name_of(kind) << " " << out << " " << i;
      }
    }
  }
}

/// Rows of floats that are bf16, in both forms.
struct both_rows {
  static constexpr int rows = 3;
  std::int64_t n, stride = padded_row(n);
  std::vector<float> values;
  std::vector<std::uint16_t> bits;
  device_array<float> floats;
  device_array<std::uint16_t> rounded;

  both_rows(random_data& random, std::int64_t n_)
      : n(n_), values(some_rows(random, n, padded_row(n))), bits(bits_of(values)), floats(values), rounded(bits) {}
  static std::vector<float> some_rows(random_data& random, std::int64_t n, std::int64_t stride) {
    auto all = random_rows(random, rows, n, stride);
    for (float& value : all) value = as_bf16(value);
    return all;
  }
  static std::vector<std::uint16_t> bits_of(const std::vector<float>& values) {
    std::vector<std::uint16_t> all;
    for (const float value : values) all.push_back(f32_to_bf16(value));
    return all;
  }
  float_rows as_floats() const { return {floats.data(), stride}; }
  bf16_rows as_rounded() const { return {rounded.data(), stride}; }

  /// Of rows of `padded` numbers.
  void expect_rounded(const std::vector<std::uint16_t>& got, std::int64_t padded,
                      const std::vector<float>& expected) const {
    for (std::int64_t row = 0; row < rows; ++row)
      for (std::int64_t i = 0; i < padded; ++i) {
        const float value = bf16_to_f32(got[std::size_t(row * padded + i)]);
        const float wanted = i < n ? expected[std::size_t(row * stride + i)] : 0.0f;
        ASSERT_NEAR(value, wanted, std::fabs(wanted) / 128) << row << " " << i << " of " << n;
      }
  }
};

TEST_F(cuda_bf16_rows, are_what_norms_and_activations_make) {
  random_data random(64);
  for (const std::int64_t n : {5, 64, 2100}) {
    const both_rows x(random, n), gate(random, n), dy(random, n), weight(random, n), out(random, n);
    const std::int64_t padded = rounded_up(n, 16);
    const norm_args norm{.rows = x.rows,
                         .n = n,
                         .x = x.as_floats(),
                         .weight = weight.floats.data(),
                         .eps = 1e-5f,
                         .out = out.as_floats()};
    const rounded_swiglu_args swiglu_args{x.rows, n, padded, gate.as_rounded(), x.as_rounded()};
    const auto normed =
        rows_after(x.rows, padded, [&](const stream& on, bf16_rows to) { rms_norm_rounded(on, norm, padded, to); });
    const auto active =
        rows_after(x.rows, padded, [&](const stream& on, bf16_rows to) { swiglu_rounded(on, swiglu_args, to); });
    const auto gradients = rows_after(2 * x.rows, padded, [&](const stream& on, bf16_rows to) {
      swiglu_back_rounded(on, swiglu_args, dy.as_rounded(), to, to.from(x.rows, 0));
    });
    const stream on;
    rms_norm(on, norm);
    on.wait();
    x.expect_rounded(normed, padded, out.floats.read());
    swiglu(on, {.rows = x.rows, .n = n, .gate = gate.as_floats(), .x = x.as_floats(), .out = out.as_floats()});
    on.wait();
    x.expect_rounded(active, padded, out.floats.read());
    swiglu_back(on, {.rows = x.rows, .n = n, .dy = dy.as_floats(), .gate = gate.as_floats(), .x = x.as_floats()});
    on.wait();
    const auto middle = gradients.begin() + x.rows * padded;
    x.expect_rounded({gradients.begin(), middle}, padded, gate.floats.read());
    x.expect_rounded({middle, gradients.end()}, padded, x.floats.read());
  }
}

TEST_F(cuda_bf16_rows, are_copied) {
  std::vector<std::uint16_t> from(3 * 40);
  for (std::size_t i = 0; i < from.size(); ++i) from[i] = std::uint16_t(i);
  const device_array<std::uint16_t> there(from);
  const auto got = rows_after(3, 24, [&](const stream& on, bf16_rows to) {
    copy_rows(on, bf16_rows{there.data(), 40}.from(0, 8), 3, 16, to);
  });
  for (std::size_t row = 0; row < 3; ++row)
    for (std::size_t i = 0; i < 24; ++i)
      EXPECT_EQ(got[row * 24 + i], i < 16 ? from[row * 40 + 8 + i] : untouched) << row << " " << i;
}

TEST_F(cuda_bf16_rows, begin_with_a_bias_or_get_one) {
  random_data random(63);
  const std::int64_t n = 300, stride = padded_row(n);
  const auto bias = random_rows(random, 1, n, stride), y = random_rows(random, 4, n, stride);
  const device_array<float> bias_there(bias);
  for (const into how : {into::set, into::add}) {
    const device_array<float> y_there(y);
    const stream on;
    put_bias(on, bias_there.data(), 4, n, {y_there.data(), stride}, how);
    on.wait();
    const auto got = y_there.read();
    for (std::int64_t row = 0; row < 4; ++row)
      for (std::int64_t i = 0; i < stride; ++i) {
        const auto at = std::size_t(row * stride + i);
        if (i < n)
          EXPECT_EQ(got[at], (how == into::add ? y[at] : 0.0f) + bias[std::size_t(i)]);
        else
          EXPECT_TRUE(std::isnan(got[at]));
      }
  }
}

/// The real library, with something wrong about it.
class wrong_library final : public float_library {
 public:
  explicit wrong_library(std::unique_ptr<float_library> real) : real_(std::move(real)) {}
  std::string name() const override { return real_->name(); }
  void multiply(const stream& on, const bf16_product& p) override {
    bf16_product other = p;
    if (p.a.turned) other.factor *= 0.5f;
    real_->multiply(on, other);
  }

 private:
  std::unique_ptr<float_library> real_;
};

class cuda_float_library : public device_test {
 protected:
  void SetUp() override {
    device_test::SetUp();
    if (IsSkipped()) return;
    loaded_ = load_float_library(on_.emplace());
    if (!loaded_.library) GTEST_SKIP() << "there is no library: " << loaded_.about;
  }
  std::optional<stream> on_;
  loaded<float_library> loaded_;
};

TEST_F(cuda_float_library, is_taken_only_if_it_multiplies_rightly) {
  EXPECT_TRUE(is_right(*on_, *loaded_.library));
  wrong_library wrong(std::move(loaded_.library));
  EXPECT_FALSE(is_right(*on_, wrong));
}

/// Of random factors, some of them turned, with strides of their own.
std::vector<float> product_of(const stream& on, float_library& library, std::int64_t rows, std::int64_t columns,
                              std::int64_t depth, int turns) {
  random_data random(64);
  const auto factor = [&](std::int64_t height, std::int64_t width) {
    std::vector<std::uint16_t> all;
    for (std::int64_t i = 0; i < height * (rounded_up(width, 8) + 8); ++i) all.push_back(f32_to_bf16(random.value()));
    return device_array<std::uint16_t>(all);
  };
  const bool a_turned = turns % 2 == 1, b_turned = turns / 2 == 1;
  const auto a = a_turned ? factor(depth, rows) : factor(rows, depth);
  const auto b = b_turned ? factor(columns, depth) : factor(depth, columns);
  const device_array<float> sums(std::vector<float>(std::size_t(rows * padded_row(columns)), 1.0f));
  library.multiply(on, {.rows = rows,
                        .columns = columns,
                        .depth = depth,
                        .a = {a.data(), rounded_up(a_turned ? rows : depth, 8) + 8, a_turned},
                        .b = {b.data(), rounded_up(b_turned ? depth : columns, 8) + 8, b_turned},
                        .sums = {sums.data(), padded_row(columns)},
                        .factor = 0.5f,
                        .how = into::add});
  on.wait();
  return sums.read();
}

/// Products as adapters need them, with few rows, few columns or a small depth.
TEST_F(cuda_float_library, gives_the_same_bits_every_time) {
  for (const int turns : {0, 1, 2, 3})
    for (const auto& [rows, columns, depth] :
         {std::tuple{300, 16, 700}, {16, 200, 520}, {130, 190, 16}, {70, 5, 83}, {260, 130, 96}}) {
      const auto first = product_of(*on_, *loaded_.library, rows, columns, depth, turns);
      for (int time = 0; time < 3; ++time)
        ASSERT_TRUE(same_bits(first, product_of(*on_, *loaded_.library, rows, columns, depth, turns)))
            << rows << " " << columns << " " << depth << " turns " << turns;
    }
}

}  // namespace
}  // namespace troupe::cuda
