// Compiled once per ISA. Gradients of convolutions: what model/ops/convolution_kernels.cpp computes, backward, for
// sequences from their beginning on.
#include "model/ops/column_convolution.hpp"
#include "model/train/kernels/train_kernels_isa.hpp"

namespace troupe::TROUPE_ISA {

void convolve_back(const convolve_back_args& a) {
  for (std::int64_t i = 0; i < a.columns.count; i += lanes) {
    const auto gradient = [&](int row) INLINED { return a.gradient + row * a.gradient_stride + i; };
    column_convolution columns(a.columns, i, a.rows);
    columns.run([&](int row) INLINED { return load(a.x + row * a.x_stride + i); },
                [&](int row, f32x16 total) INLINED {  // silu's
                  const f32x16 s = sigmoid(total);
                  store(gradient(row), load(gradient(row)) * fma(total * s, all(1.0f) - s, s));
                });
    columns.back([&](int row) INLINED { return load(gradient(row)); },
                 [&](int row, f32x16 total) INLINED { store(gradient(row), total); });
  }
}

/// Until all of them are known x_gradient holds the gradients of the sums.
void short_convolve_back(const short_convolution_back_args& a) {
  for (std::int64_t i = 0; i < a.columns.count; i += lanes) {
    const auto of = [&](const float* rows, int row) INLINED { return load(rows + row * a.row_stride + i); };
    const auto to = [&](float* rows, int row) INLINED { return rows + row * a.gradient_stride + i; };
    column_convolution columns(a.columns, i, a.rows);
    columns.run([&](int row) INLINED { return of(a.b, row) * of(a.x, row); },
                [&](int row, f32x16 total) INLINED {
                  const f32x16 g = load(a.out_gradient + row * a.out_stride + i);
                  store(to(a.c_gradient, row), g * total);
                  store(to(a.x_gradient, row), g * of(a.c, row));
                });
    columns.back([&](int row) INLINED { return load(to(a.x_gradient, row)); },
                 [&](int row, f32x16 total) INLINED {
                   store(to(a.b_gradient, row), total * of(a.x, row));
                   store(to(a.x_gradient, row), total * of(a.b, row));
                 });
  }
}

}  // namespace troupe::TROUPE_ISA
