// Gate, up and activation at once, against one after the other.
#include "tests/model/ops/cuda/product_data.hpp"

namespace troupe::cuda {
namespace {

using cuda_gated_products = device_test;

struct gated_data {
  product_data gate, up;
  bool bias;

  gated_data(random_data& random, scheme kind, int rows, std::int64_t outs, std::int64_t ins, bool with_bias)
      : gate(random, kind, rows, outs, ins), up(random, kind, rows, outs, ins), bias(with_bias) {}

  float_rows inputs() const { return {up.x_.data(), padded_row(up.ins)}; }
  product of(const product_data& data, float_rows y) const {
    return {data.matrix.view, y, bias ? data.bias_.data() : nullptr};
  }

  /// Rows of floats, and then codes, made by `make(stream, inputs, out, bf16)`.
  template <class Make>
  std::vector<float> made(Make make) const {
    const auto size = static_cast<std::size_t>(up.rows * up.stride);
    const device_array<float> out(size);
    const device_array<std::uint16_t> bf16(size);
    const coded_rows codes(up.rows, up.ins);
    const stream on;
    const product_inputs x{up.rows, inputs(), codes.view(up.kind)};
    encode(on, x.x, up.rows, up.ins, x.codes);
    make(on, x, float_rows{out.data(), up.stride}, bf16.data());
    on.wait();
    std::vector<float> all = out.read();
    for (const std::uint16_t code : bf16.read()) all.push_back(code);
    return all;
  }
  std::vector<float> at_once(bool is_gelu) const {
    return made([&](const stream& on, const product_inputs& x, float_rows out, std::uint16_t* bf16) {
      gated_product both{of(gate, {}), of(up, {}), is_gelu, out};
      multiply_gated(on, both, x);
      both.bf16 = bf16;
      multiply_gated(on, both, x);
    });
  }
  std::vector<float> one_after_the_other(bool is_gelu) const {
    return made([&](const stream& on, const product_inputs& x, float_rows out, std::uint16_t* bf16) {
      const device_array<float> of_gate(static_cast<std::size_t>(up.rows * up.stride));
      const float_rows g{of_gate.data(), up.stride};
      const product both[] = {of(gate, g), of(up, out)};
      matmul(on, both, x);
      const activation_args args{up.rows, up.outs, g, out, out, {.bf16 = bf16}};
      is_gelu ? geglu(on, args) : swiglu(on, args);
      on.wait();
    });
  }
};

TEST_F(cuda_gated_products, have_the_bits_of_products_and_the_activation_behind_them) {
  if (!is_hopper()) GTEST_SKIP() << "only kernels for Hopper do both at once";
  random_data random(19);
  for (const scheme kind : {scheme::bf16, scheme::u8})
    for (const bool is_gelu : {false, true}) {
      SCOPED_TRACE(testing::Message() << name_of(kind) << " gelu " << is_gelu);
      for (const int rows : {200, 300}) {  // clusters of two tiles of rows, or several tiles for each block; the last
                                           // rows not whole
        const gated_data data(random, kind, rows, 64 * random.between(2, 3), 4 * random.between(120, 170), is_gelu);
        EXPECT_TRUE(
            same_bits(in_every_order([&] { return data.at_once(is_gelu); }), data.one_after_the_other(is_gelu)));
      }
    }
}

TEST_F(cuda_gated_products, are_left_to_others_where_kernels_do_not_have_them) {
  random_data random(20);
  const auto can = [&](scheme of_gate, scheme of_up, int rows, std::int64_t outs) {
    const product_data gate(random, of_gate, 1, outs, 128), up(random, of_up, 1, outs, 128);
    return can_multiply_gated({{gate.matrix.view}, {up.matrix.view}}, rows);
  };
  EXPECT_EQ(can(scheme::bf16, scheme::bf16, 257, 64), is_hopper());
  EXPECT_FALSE(can(scheme::bf16, scheme::bf16, 256, 64)) << "few rows";
  EXPECT_FALSE(can(scheme::bf16, scheme::bf16, 257, 80)) << "no whole tiles";
  EXPECT_FALSE(can(scheme::bf16, scheme::u8, 257, 64));
  EXPECT_FALSE(can(scheme::q4, scheme::q4, 257, 64));
  const older_device one;
  if (is_hopper()) return;
  EXPECT_FALSE(can(scheme::bf16, scheme::bf16, 257, 64));
}

}  // namespace
}  // namespace troupe::cuda
