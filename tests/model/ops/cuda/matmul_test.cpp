// Products against the host's, and promise 1: what a row gets does not depend on the rows beside it.
#include "tests/model/ops/cuda/product_data.hpp"

namespace troupe::cuda {
namespace {

using cuda_matmul = device_test;

void expect_equal(const product_data& data, const std::vector<float>& got, const std::vector<float>& expected) {
  for (int row = 0; row < data.rows; ++row) {
    const auto at = row * data.stride;
    expect_near(got.data() + at, expected.data() + at, std::size_t(data.outs), 1e-4);
    // exact sums, and the same roundings behind them
    const bool same = std::memcmp(got.data() + at, expected.data() + at, std::size_t(data.outs) * 4) == 0;
    ASSERT_TRUE(same || data.kind != scheme::u8);
  }
}

TEST_F(cuda_matmul, equals_the_host_on_random_ragged_shapes_for_every_scheme) {
  random_data random(11);
  for (const scheme kind : all_schemes)
    for (int round = 0; round < 6; ++round) {
      const int most[] = {1, 8, 20, 40, 70, 130};
      const product_data data(random, kind, random.between(std::max(1, most[round] - 9), most[round]),
                              random.between(1, 160), random.between(1, 400));
      const bool bias = random.between(0, 1) == 1, accumulate = random.between(0, 1) == 1;
      SCOPED_TRACE(testing::Message() << name_of(kind) << " rows " << data.rows << " outs " << data.outs << " ins "
                                      << data.ins);
      const auto apart = data.on_device(0, data.rows, bias, accumulate);
      expect_equal(data, apart, data.on_host(bias, accumulate));
      EXPECT_TRUE(same_bits(data.on_device(0, data.rows, bias, accumulate, false), apart)) << "slices in one block";
    }
}

TEST_F(cuda_matmul, sums_of_many_slices_equal_the_host) {
  random_data random(12);
  for (const scheme kind : all_schemes) {
    const product_data data(random, kind, 70, 17, 2500);
    SCOPED_TRACE(name_of(kind));
    const auto all = data.on_device(0, 70, true, false);
    expect_equal(data, all, data.on_host(true, false));
    EXPECT_TRUE(same_bits(data.on_device(0, 70, true, false, false), all)) << "slices in one block";
    EXPECT_TRUE(same_bits(data.on_device(0, 2, true, false), {all.begin(), all.begin() + 2 * data.stride}))
        << "few rows";
  }
}

TEST_F(cuda_matmul, more_tiles_than_a_device_takes_at_once_equal_few_rows) {
  random_data random(16);
  for (const scheme kind : all_schemes)
    for (const int rows : {20, 70, 200, 260}) {
      SCOPED_TRACE(testing::Message() << name_of(kind) << " rows " << rows);
      const product_data data(random, kind, rows, 600, 370);
      const auto all = data.on_device(0, rows, true, false);
      for (const int first : {0, rows / 2, rows - 8}) {
        const auto few = data.on_device(first, 8, true, false);
        for (int row = 0; row < 8; ++row)
          ASSERT_EQ(std::memcmp(few.data() + row * data.stride, all.data() + (first + row) * data.stride, 600 * 4), 0)
              << "row " << first + row;
      }
    }
}

TEST_F(cuda_matmul, tiles_of_which_two_blocks_of_threads_have_half_each_are_the_same_to_the_bit) {
  random_data random(18);
  for (const scheme kind : all_schemes) {
    SCOPED_TRACE(name_of(kind));
    const product_data only(random, kind, 100, 90, 1100), behind_others(random, kind, 200, 700, 500);
    EXPECT_TRUE(same_bits(in_every_order([&] { return only.on_device(0, 100, true, true); }),
                          only.on_device(0, 100, true, true, false)));
    EXPECT_TRUE(
        same_bits(behind_others.on_device(0, 200, true, true), behind_others.on_device(0, 200, true, true, false)));
  }
}

TEST_F(cuda_matmul, older_devices_give_the_same_bits) {
  random_data random(17);
  for (const scheme kind : all_schemes)
    for (const int rows : {3, 20, 70, 140}) {
      const product_data data(random, kind, rows, 150, 1100);
      const auto newer = data.on_device(0, rows, true, true);
      const older_device one;
      EXPECT_TRUE(same_bits(data.on_device(0, rows, true, true), newer)) << name_of(kind) << " rows " << rows;
      EXPECT_TRUE(same_bits(data.on_device(0, rows, true, true, false), newer)) << "slices in one block";
    }
}

TEST_F(cuda_matmul, a_row_is_the_same_to_the_bit_alone_and_among_any_number_of_others) {
  random_data random(13);
  for (const scheme kind : all_schemes) {
    const product_data data(random, kind, 130, 20, 700);
    const auto all = data.on_device(0, data.rows, true, true);
    for (const int count : {1, 8, 9, 33, 65, 129}) {
      const int first = data.rows - count;
      const std::vector<float> rest(all.begin() + first * data.stride, all.end());
      const auto some = data.on_device(first, count, true, true);
      for (int row = 0; row < count; ++row)
        ASSERT_EQ(
            std::memcmp(some.data() + row * data.stride, rest.data() + row * data.stride, std::size_t(data.outs) * 4),
            0)
            << name_of(kind) << ", " << count << " rows, row " << row;
    }
  }
}

TEST_F(cuda_matmul, the_order_of_threads_changes_nothing) {
  random_data random(14);
  for (const scheme kind : all_schemes)
    for (const int rows : {3, 20, 70}) {
      const product_data data(random, kind, rows, 35, 300);
      in_every_order([&] {
        auto y = data.on_device(0, rows, false, true);
        for (float& v : y) v = std::isnan(v) ? 0 : v;  // what is behind the outputs
        return y;
      });
    }
}

TEST_F(cuda_matmul, products_of_several_schemes_share_their_inputs) {
  random_data random(15);
  const std::int64_t ins = 600;
  for (const int rows : {5, 20}) {
    const product_data first(random, scheme::q8, rows, 33, ins), second(random, scheme::bf16, rows, 16, ins),
        third(random, scheme::q8, rows, 100, ins);
    const coded_rows codes(rows, ins);
    const device_array<float> scratch(static_cast<std::size_t>(matmul_scratch_floats()));
    const product_inputs inputs{rows, {first.x_.data(), padded_row(ins)}, codes.view(true, true), scratch.data()};
    const stream on;
    encode(on, inputs.x, rows, ins, inputs.codes);
    const auto multiply = [&](bool together) {
      std::vector<device_array<float>> y;
      std::vector<product> products;
      for (const auto* data : {&first, &second, &third}) {
        y.emplace_back(std::vector<float>(data->before.size()));
        products.push_back({data->matrix.view, {y.back().data(), data->stride}});
      }
      if (together) matmul(on, products, inputs);
      for (const product& p : products)
        if (!together) matmul(on, std::span(&p, 1), inputs);
      on.wait();
      std::vector<float> all;
      for (const auto& part : y)
        for (const float v : part.read()) all.push_back(v);
      return all;
    };
    const auto apart = multiply(false);
    EXPECT_GT(std::count_if(apart.begin(), apart.end(), [](float v) { return v != 0; }), rows * 140);
    EXPECT_TRUE(same_bits(multiply(true), apart)) << rows << " rows";
  }
}

}  // namespace
}  // namespace troupe::cuda
