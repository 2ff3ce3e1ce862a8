// A random product, by the device and by the host.
#pragma once
#include "tests/model/ops/cuda/on_device.hpp"
#include "tests/model/rounded.hpp"

namespace troupe::cuda {

struct product_data {
  scheme kind;
  int rows;
  std::int64_t outs, ins, stride;
  random_matrix weights;
  device_matrix matrix;
  std::vector<float> x, before, bias;
  device_array<float> x_, bias_;

  product_data(random_data& random, scheme k, int r, std::int64_t o, std::int64_t i)
      : kind(k),
        rows(r),
        outs(o),
        ins(i),
        stride(padded_row(o)),
        weights(random, k, o, i),
        matrix(weights),
        x(random_rows(random, r, i, padded_row(i))),
        before(random_rows(random, r, o, stride)),
        bias(random_rows(random, 1, o, stride)),
        x_(x),
        bias_(bias) {}

  /// Rows [first, first + count) as a product of their own.
  std::vector<float> on_device(int first, int count, bool with_bias, bool accumulate, bool slices_apart = true) const {
    return on_device(
        first, count, with_bias, accumulate, slices_apart,
        [](const stream& on, const product& p, const product_inputs& inputs) { matmul(on, std::span(&p, 1), inputs); });
  }
  template <class Multiply>
  std::vector<float> on_device(int first, int count, bool with_bias, bool accumulate, bool slices_apart,
                               Multiply multiply) const {
    const std::int64_t x_stride = padded_row(ins);
    const device_array<float> y(before.data() + first * stride, static_cast<std::size_t>(count * stride));
    const coded_rows codes(count, ins);
    const device_array<float> scratch(slices_apart ? static_cast<std::size_t>(matmul_scratch_floats()) : 0);
    const product_inputs inputs{count, {x_.data() + first * x_stride, x_stride}, codes.view(kind), scratch.data()};
    const stream on;
    encode(on, inputs.x, count, ins, inputs.codes);
    multiply(on, product{matrix.view, {y.data(), stride}, with_bias ? bias_.data() : nullptr, accumulate}, inputs);
    on.wait();
    return y.read();
  }

  /// The host's kernels; of bf16 weights the inputs are rounded first, as the device does.
  std::vector<float> on_host(bool with_bias, bool accumulate) const {
    thread_pool pool(1);
    const compute with{pool, kernels()};
    std::vector<float> y = before, inputs = x;
    for (float& v : inputs) v = std::isnan(v) ? 0 : kind == scheme::bf16 ? as_bf16(v) : v;
    quantized_rows quantized(kernels(), rows, ins);
    quantized.assign(pool, inputs.data(), padded_row(ins), rows, ins);
    matmul_args a;
    a.w = weights.view;
    a.rows = rows;
    a.q = quantized.view();
    a.x = inputs.data();
    a.x_stride = padded_row(ins);
    a.y = y.data();
    a.y_stride = stride;
    a.bias = with_bias ? bias.data() : nullptr;
    a.accumulate = accumulate;
    matmul(with, std::span(&a, 1));
    return y;
  }
};

}  // namespace troupe::cuda
