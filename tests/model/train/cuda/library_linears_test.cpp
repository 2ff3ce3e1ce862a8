// Linear layers by a library for bf16, beside our own kernels.
#include "model/train/cuda/library_linears.hpp"

#include "model/ops/isa.hpp"
#include "tests/model/arch/cuda/on_gpu.hpp"
#include "tests/model/ops/cuda/on_device.hpp"
#include "tests/model/train/train_fixture.hpp"

namespace troupe {
namespace {

class library_linears_on_gpu : public testing::Test {
 protected:
  void SetUp() override {
    skip_without_gpu();
    if (IsSkipped()) return;
    cuda::use_device(first_gpu.gpu);
    cuda::loaded_float_library loaded = cuda::load_float_library(on_);
    if (!loaded.library) GTEST_SKIP() << "there is no library: " << loaded.about;
    thread_pool pool(1);
    linears_.emplace(std::move(loaded.library), frozen(load_golden("llama", pool, scheme::u8)), 20);
  }

  cuda::stream on_;
  std::optional<library_linears> linears_;
};

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
        on_.wait();
        return y_there.read();
      };
      const auto got = made([&](const cuda::weight_product& p) { linears_->multiply(on_, p); });
      const auto expected = made([&](const cuda::weight_product& p) { cuda::multiply_rounded(on_, p, 1); });
      for (std::int64_t row = 0; row < rows; ++row)
        cuda::expect_near(got.data() + row * padded_row(to), expected.data() + row * padded_row(to),
                          static_cast<std::size_t>(to), 1e-3);
    }
}

}  // namespace
}  // namespace troupe
