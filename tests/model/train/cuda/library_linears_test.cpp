// Linear layers by a library for bf16, beside our own kernels.
#include "model/train/cuda/library_linears.hpp"

#include <optional>

#include "model/ops/isa.hpp"
#include "tests/model/arch/cuda/on_gpu.hpp"
#include "tests/model/ops/cuda/on_device.hpp"
#include "tests/model/train/passes/train_fixture.hpp"

namespace troupe {
namespace {

class library_linears_on_gpu : public testing::Test {
 protected:
  void SetUp() override {
    skip_without_gpu();
    if (IsSkipped()) return;
    cuda::use_device(first_gpu.gpu);
    auto loaded = cuda::load_float_library(stream_.emplace());
    if (!loaded.library) GTEST_SKIP() << "there is no library: " << loaded.about;
    thread_pool pool(1);
    model_ = frozen(load_golden("llama", pool, scheme::u8));
    weights_.emplace(*model_.base, 0, model_.config.layers, on());
    linears_.emplace(std::move(loaded.library), model_, *weights_, most_rows, false);
  }

  const cuda::stream& on() const { return *stream_; }

  static constexpr int most_rows = 20;
  std::optional<cuda::stream> stream_;
  trained_model model_;
  std::optional<device_weights> weights_;
  std::optional<library_linears> linears_;
};

/// Two layers in turns, twice.
TEST_F(library_linears_on_gpu, give_the_same_bits_with_weights_that_are_kept) {
  library_linears keeping(cuda::load_float_library(on()).library, model_, *weights_, most_rows, true);
  random_data random(72);
  const std::int64_t hidden = model_.config.hidden, ffn = model_.config.ffn;
  const cuda::device_array<float> x(cuda::random_rows(random, most_rows, hidden, padded_row(hidden))),
      dy(cuda::random_rows(random, most_rows, ffn, padded_row(ffn)));
  for (int time = 0; time < 2; ++time)
    for (const linear_kind kind : {linear_kind::gate, linear_kind::up}) {
      const device_linear layer{.w = weights_->layers[1][kind].w};
      const auto made = [&](library_linears& by) {
        const cuda::device_array<float> y(most_rows * padded_row(ffn)), dx(most_rows * padded_row(hidden));
        by.read(on(), {x.data(), padded_row(hidden)}, most_rows, hidden);
        by.forward(on(), layer, {.rows = most_rows}, {y.data(), padded_row(ffn)}, into::set);
        by.back(on(), layer, {.rows = most_rows}, {dy.data(), padded_row(ffn)}, {dx.data(), padded_row(hidden)},
                into::set);
        on().wait();
        auto all = y.read();
        const auto more = dx.read();
        all.insert(all.end(), more.begin(), more.end());
        return all;
      };
      EXPECT_TRUE(same_bits(made(*linears_), made(keeping)));
    }
}

TEST_F(library_linears_on_gpu, give_the_same_bits_of_a_head_that_is_kept) {
  library_linears keeping(cuda::load_float_library(on()).library, model_, *weights_, most_rows, true);
  random_data random(73);
  const std::int64_t hidden = model_.config.hidden, vocab = model_.config.vocab_size;
  for (const bool turned : {false, true}) {
    const std::int64_t from = turned ? vocab : hidden, to = turned ? hidden : vocab;
    const cuda::device_array<float> x(cuda::random_rows(random, most_rows, from, padded_row(from)));
    const auto made = [&](library_linears& by) {
      const cuda::device_array<float> y(most_rows * padded_row(to));
      by.multiply(on(), {.w = weights_->head,
                         .turned = turned,
                         .rows = most_rows,
                         .x = {x.data(), padded_row(from)},
                         .y = {y.data(), padded_row(to)}});
      on().wait();
      return y.read();
    };
    for (int time = 0; time < 2; ++time) EXPECT_TRUE(same_bits(made(*linears_), made(keeping)));
  }
}

/// A matrix with more outputs than there is room for at a time.
TEST_F(library_linears_on_gpu, multiply_large_matrices_in_pieces_both_ways) {
  random_data random(71);
  for (const scheme kind : {scheme::bf16, scheme::u8, scheme::u8g64, scheme::q8, scheme::u4g32})
    for (const bool turned : {false, true}) {
      const std::int64_t outs = 3037, ins = 40, rows = 2;
      const random_matrix host(random, kind, outs, ins);
      const cuda::device_matrix there(host);
      const std::int64_t from = turned ? outs : ins, to = turned ? ins : outs;
      const auto x = cuda::random_rows(random, rows, from, padded_row(from));
      const auto y = cuda::random_rows(random, rows, to, padded_row(to)), bias = cuda::random_rows(random, 1, to, to);
      const cuda::device_array<float> x_there(x), bias_there(bias);
      const auto made = [&](auto multiply) {
        const cuda::device_array<float> y_there(y);
        multiply(cuda::weight_product{.w = there.view,
                                      .turned = turned,
                                      .rows = rows,
                                      .x = {x_there.data(), padded_row(from)},
                                      .y = {y_there.data(), padded_row(to)},
                                      .bias = turned ? nullptr : bias_there.data(),
                                      .how = into::add});
        on().wait();
        return y_there.read();
      };
      const auto got = made([&](const cuda::weight_product& p) { linears_->multiply(on(), p); });
      const auto expected = made([&](const cuda::weight_product& p) { cuda::multiply_rounded(on(), p, 1); });
      for (std::int64_t row = 0; row < rows; ++row)
        cuda::expect_near(got.data() + row * padded_row(to), expected.data() + row * padded_row(to),
                          static_cast<std::size_t>(to), 1e-3);
    }
}

}  // namespace
}  // namespace troupe
