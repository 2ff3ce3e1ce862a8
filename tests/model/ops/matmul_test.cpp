#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <utility>

#include "base/to_size.hpp"
#include "tests/model/ops/random_data.hpp"
#include "tests/model/ops/tested_tables.hpp"

namespace troupe {
namespace {

struct product_case {
  scheme kind;
  int rows;
  std::int64_t outs, ins;
  bool bias, accumulate;
  input_bits bits = input_bits::eight;
};

/// A case of each scheme with each number of rows that has kernels of its own, and with more than a tile.
template <class Check>
void for_random_cases(random_data& random, Check check) {
  for (const scheme kind : all_schemes)
    for (const input_bits bits : {input_bits::eight, input_bits::sixteen})
      for (int rows = 1; rows <= 17; ++rows)
        check(product_case{kind, rows <= 13 ? rows : random.between(14, 70), random.between(1, 150),
                           random.between(1, 300), random.between(0, 1) == 1, random.between(0, 1) == 1, bits});
}

struct random_inputs {
  random_matrix matrix;
  aligned_buffer<float> x, bias, before;  ///< before: what the product is added to

  random_inputs(random_data& random, const product_case& c)
      : matrix(random, c.kind, c.outs, c.ins),
        x(random.rows(c.rows, c.ins, padded_row(c.ins))),
        bias(random.rows(1, c.outs, padded_row(c.outs))),
        before(random.rows(c.rows, c.outs, padded_row(c.outs))) {}
};

/// The same product by one instruction set, or by the reference.
aligned_buffer<float> multiply(const product_case& c, const random_inputs& in, const kernel_table& table,
                               bool reference) {
  thread_pool pool(2);
  const compute with{pool, table};
  aligned_buffer<float> y(in.before.size());
  std::memcpy(y.data(), in.before.data(), in.before.size() * sizeof(float));
  quantized_rows quantized(table, c.rows, c.ins, c.bits);
  matmul_args args;
  args.w = in.matrix.view;
  args.rows = c.rows;
  args.x = in.x.data();
  args.x_stride = padded_row(c.ins);
  args.y = y.data();
  args.y_stride = padded_row(c.outs);
  args.bias = c.bias ? in.bias.data() : nullptr;
  args.accumulate = c.accumulate;
  quantized.begin(c.rows, c.ins, c.bits);  // products of floats must not mind
  if (is_integer(c.kind)) quantized.assign(pool, args.x, args.x_stride, c.rows, c.ins, c.bits);
  args.q = quantized.view();
  if (reference)
    matmul_reference(args);
  else
    matmul(with, std::span(&args, 1));
  return y;
}

TEST(matmul, equals_the_reference_on_random_ragged_shapes_for_every_scheme) {
  random_data random(1);
  for_random_cases(random, [&](const product_case& c) {
    const random_inputs in(random, c);
    const auto expected = multiply(c, in, kernels(), true);
    const auto got = multiply(c, in, kernels(), false);
    for (int row = 0; row < c.rows; ++row)
      for (std::int64_t out = 0; out < c.outs; ++out) {
        const auto at = to_size(row * padded_row(c.outs) + out);
        ASSERT_NEAR(got[at], expected[at], 2e-5 * std::sqrt(double(c.ins)))
            << name_of(c.kind) << " rows " << c.rows << " outs " << c.outs << " ins " << c.ins << " at " << row << ","
            << out;
      }
  });
}

TEST(matmul, is_the_same_to_the_bit_on_every_instruction_set) {
  random_data random(2);
  for_random_cases(random, [&](const product_case& c) {
    const random_inputs in(random, c);
    const auto expected = multiply(c, in, *kernels_of("generic"), false);
    for (const kernel_table* table : tested_tables()) {
      const auto got = multiply(c, in, *table, false);
      ASSERT_EQ(std::memcmp(got.data(), expected.data(), got.size() * sizeof(float)), 0)
          << table->isa << " " << name_of(c.kind) << " rows " << c.rows << " outs " << c.outs << " ins " << c.ins;
    }
  });
}

/// Sums of narrow integers must not overflow: largest and smallest weights, and inputs whose signs agree with each
/// other in several ways.
void expect_no_overflow(scheme kind, input_bits bits, int codes) {
  constexpr std::int64_t outs = 32, ins = 1088;
  constexpr int rows = 13;
  constexpr std::uint8_t signs[] = {0b1111'1111, 0b0000'0000, 0b0011'0011, 0b0101'0101, 0b0000'1111, 0b1100'0011};
  const product_case c{kind, rows, outs, ins, false, false, bits};
  random_data random(5);
  const random_inputs in(random, c);
  std::memset(in.matrix.memory.data(), codes, packed_bytes(kind, outs, ins).weights);
  for (int row = 0; row < rows; ++row)
    for (std::int64_t i = 0; i < ins; ++i)
      in.x[to_size(row * padded_row(ins) + i)] = signs[row % 6] >> i % 8 & 1 ? 2.0f : -2.0f;
  const auto expected = multiply(c, in, kernels(), true);
  const auto plain = multiply(c, in, *kernels_of("generic"), false);
  for (int row = 0; row < rows; ++row)
    for (std::int64_t out = 0; out < outs; ++out) {
      const auto at = to_size(row * padded_row(outs) + out);
      ASSERT_NEAR(plain[at], expected[at], 1e-5 * std::fabs(expected[at]) + 1e-3) << name_of(kind) << " " << codes;
    }
  for (const kernel_table* table : tested_tables()) {
    const auto got = multiply(c, in, *table, false);
    ASSERT_EQ(std::memcmp(got.data(), plain.data(), got.size() * sizeof(float)), 0)
        << table->isa << " " << name_of(kind) << " " << codes;
  }
}

TEST(matmul, does_not_overflow_where_weights_and_inputs_are_extreme) {
  for (const scheme kind : all_schemes)
    for (const input_bits bits : {input_bits::eight, input_bits::sixteen})
      for (const int codes : {0x00, 0xff, 0x0f, 0xf0})
        if (is_integer(kind)) expect_no_overflow(kind, bits, codes);
}

TEST(matmul, gives_a_row_the_same_bits_alone_and_among_others) {
  random_data random(3);
  for (const scheme kind : all_schemes) {
    const product_case many{kind, 37, 70, 130, false, false};
    product_case alone = many;
    alone.rows = 1;
    random_inputs in(random, many);
    const auto together = multiply(many, in, kernels(), false);
    const auto x = std::exchange(in.x, aligned_buffer<float>(to_size(padded_row(many.ins))));
    for (int row = 0; row < many.rows; ++row) {
      std::memcpy(in.x.data(), x.data() + row * padded_row(many.ins), in.x.size() * sizeof(float));
      const auto single = multiply(alone, in, kernels(), false);
      ASSERT_EQ(
          std::memcmp(single.data(), together.data() + row * padded_row(many.outs), to_size(many.outs) * sizeof(float)),
          0)
          << name_of(kind) << " row " << row;
    }
  }
}

TEST(matmul, does_not_depend_on_the_number_of_threads) {
  random_data random(4);
  const random_matrix matrix(random, scheme::u8, 4096, 128);
  const auto x = random.rows(3, 128, 128);
  const auto run = [&](int threads) {
    thread_pool pool(threads);
    const compute with{pool, kernels()};
    quantized_rows quantized(kernels(), 3, 128);
    quantized.assign(pool, x.data(), 128, 3, 128);
    std::vector<float> y(3 * 4096);
    matmul_args args;
    args.w = matrix.view;
    args.rows = 3;
    args.q = quantized.view();
    args.y = y.data();
    args.y_stride = 4096;
    matmul(with, std::span(&args, 1));
    return y;
  };
  const auto expected = run(1);
  for (const int threads : {2, 3, 5}) EXPECT_EQ(run(threads), expected);
}

}  // namespace
}  // namespace troupe
