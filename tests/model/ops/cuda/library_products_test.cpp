// Products by a library, to the bit those of our own kernels.
#include "model/ops/cuda/library_products.hpp"

#include "tests/model/ops/cuda/product_data.hpp"

namespace troupe::cuda {
namespace {

/// Does so many products, counts how many it was asked for, and leaves rows out if it is told to.
class hired_library final : public integer_library {
 public:
  explicit hired_library(std::unique_ptr<integer_library> real, int products = 1000, int rows_left_out = 0)
      : real_(std::move(real)), left_(products), rows_left_out_(rows_left_out) {}

  std::string name() const override { return real_->name(); }
  bool multiply(const stream& on, const integer_product& p) override {
    ++asked;
    integer_product part = p;
    part.rows -= rows_left_out_;
    return left_-- > 0 && real_->multiply(on, part);
  }

  int asked = 0;

 private:
  std::unique_ptr<integer_library> real_;
  int left_, rows_left_out_;
};

class cuda_library_products : public device_test {
 protected:
  void SetUp() override {
    device_test::SetUp();
    if (IsSkipped()) return;
    const stream on;
    auto loaded = load_integer_library(on);
    if (!loaded.library) GTEST_SKIP() << "there is no library: " << loaded.about;
    real_ = std::move(loaded.library);
  }

  /// With room for so many outputs of a product.
  library_products products_of(std::int64_t outs, std::int64_t ins, int rows, int most_products = 1000) {
    auto hired = std::make_unique<hired_library>(std::move(real_), most_products);
    hired_ = hired.get();
    return library_products(std::move(hired), static_cast<std::size_t>(outs * std::max<std::int64_t>(ins, 4 * rows)));
  }

  std::unique_ptr<integer_library> real_;
  hired_library* hired_ = nullptr;
};

TEST_F(cuda_library_products, equal_our_own_to_the_bit_on_random_ragged_shapes) {
  random_data random(31);
  const std::int64_t most_ins = padded_row(400);
  library_products library = products_of(48, most_ins, 40);
  int pieces = 0;
  for (int round = 0; round < 12; ++round) {
    const product_data data(random, scheme::u8, random.between(1, 40), random.between(1, 300), random.between(1, 400));
    const bool bias = random.between(0, 1) == 1, accumulate = random.between(0, 1) == 1;
    SCOPED_TRACE(testing::Message() << "rows " << data.rows << " outs " << data.outs << " ins " << data.ins);
    const auto by_library = data.on_device(0, data.rows, bias, accumulate, true,
                                           [&](const stream& on, const product& p, const product_inputs& inputs) {
                                             EXPECT_EQ(library.multiply(on, p, inputs), padded_outs(data.outs));
                                           });
    EXPECT_TRUE(same_bits(by_library, data.on_device(0, data.rows, bias, accumulate)));
    pieces = std::max(pieces, std::exchange(hired_->asked, 0));
  }
  EXPECT_GT(pieces, 2);
}

TEST_F(cuda_library_products, the_order_of_threads_changes_nothing) {
  random_data random(32);
  const product_data data(random, scheme::u8, 20, 70, 200);
  library_products library = products_of(32, padded_row(200), 20);
  in_every_order([&] {
    return data.on_device(0, 20, true, true, true, [&](const stream& on, const product& p, const product_inputs& all) {
      library.multiply(on, p, all);
    });
  });
}

/// Products of two schemes that share very many rows.
struct shared_rows {
  product_data first, second, third;

  shared_rows(random_data& random, int rows)
      : first(random, scheme::u8, rows, 40, 130),
        second(random, scheme::u8g64, rows, 20, 130),
        third(random, scheme::u8, rows, 17, 130) {}

  std::vector<float> on_device(library_products* library, bool recorded = false) const {
    const coded_rows codes(first.rows, first.ins);
    std::vector<device_array<float>> y;
    std::vector<product> products;
    for (const auto* data : {&first, &second, &third}) {
      y.emplace_back(data->before);
      products.push_back({data->matrix.view, {y.back().data(), data->stride}, data->bias_.data(), true});
    }
    const product_inputs inputs{
        first.rows, {first.x_.data(), padded_row(first.ins)}, codes.view(true, false), nullptr, library};
    const stream on;
    encode(on, inputs.x, first.rows, first.ins, inputs.codes);
    if (recorded)
      graph::capture(on, [&] { matmul(on, products, inputs); }).launch(on);
    else
      matmul(on, products, inputs);
    on.wait();
    std::vector<float> all;
    for (const auto& part : y)
      for (const float v : part.read()) all.push_back(v);
    return all;
  }
};

TEST_F(cuda_library_products, serve_very_many_rows_of_u8_alone_and_give_the_bits_of_our_own) {
  random_data random(33);
  library_products library = products_of(48, 192, least_library_rows);
  for (const int rows : {least_library_rows, least_library_rows - 1}) {
    const shared_rows data(random, rows);
    EXPECT_TRUE(same_bits(data.on_device(&library), data.on_device(nullptr))) << rows << " rows";
    EXPECT_EQ(std::exchange(hired_->asked, 0), rows == least_library_rows ? 2 : 0);
  }
}

TEST_F(cuda_library_products, leave_to_our_own_kernels_what_the_library_does_not_do) {
  random_data random(34);
  const shared_rows data(random, least_library_rows);
  library_products library = products_of(16, 192, least_library_rows, 2);
  EXPECT_TRUE(same_bits(data.on_device(&library), data.on_device(nullptr)));
  EXPECT_EQ(hired_->asked, 4);  // two pieces of the first product, then one for each in vain
}

TEST_F(cuda_library_products, have_no_part_in_what_is_recorded) {
  random_data random(35);
  const shared_rows data(random, least_library_rows);
  library_products library = products_of(48, 192, least_library_rows);
  const auto expected = data.on_device(nullptr);  // and the kernels are loaded
  EXPECT_TRUE(same_bits(data.on_device(&library, true), expected));
  EXPECT_EQ(hired_->asked, 0);
}

TEST_F(cuda_library_products, take_no_library_that_multiplies_wrongly_or_not_at_all) {
  const stream on;
  EXPECT_TRUE(is_exact(on, *real_));
  hired_library refusing(std::move(real_), 0);
  EXPECT_FALSE(is_exact(on, refusing));
  hired_library wrong(load_integer_library(on).library, 1, 1);
  EXPECT_FALSE(is_exact(on, wrong));
}

}  // namespace
}  // namespace troupe::cuda
