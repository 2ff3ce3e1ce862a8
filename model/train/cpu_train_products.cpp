// The linear layers of a pass, with the adapters beside them.
#include <algorithm>

#include "model/train/cpu_train_pass.hpp"
#include "model/train/size_impl.hpp"

namespace troupe {

const float* cpu_train_pass::dropped(const lora_factors& lora, const float* x, std::int64_t stride,
                                     std::int64_t width) {
  if (dropout_.probability <= 0) return x;
  dropout_key key = dropout_;
  key.stream = lora.stream;
  for_rows(rows_, [&](std::int64_t r, int) {
    float* row = dropped_.data() + r * stride;
    kernels_.drop(key, r, x + r * stride, width, row);
    std::fill(row + width, row + rounded_up(width, 16), 0.0f);
  });
  return dropped_.data();
}

void cpu_train_pass::apply(const float* x, std::int64_t stride, activations& a, std::size_t slot, bool add,
                           linear_list linears) {
  give_way();
  std::vector<products::output> outputs;
  const auto stride_of = [&](const trained_linear& l) { return train_stride(l.w.outs); };
  for (const auto& [linear, y] : linears)
    if (linear->w.outs > 0 && y) outputs.push_back({&linear->w, linear->bias, y, stride_of(*linear), add});
  if (!outputs.empty()) body_.forward(x, stride, rows_, outputs);
  for (const auto& [linear, y] : linears) {
    const lora_factors& lora = linear->lora;
    float* between = a.lora.data() + static_cast<std::int64_t>(slot++) * options_.most_rows * lora_stride_;
    if (lora.rank == 0) continue;
    const float* input = dropped(lora, x, stride, linear->w.ins);
    body_.multiply({.rows = rows_,
                    .columns = lora.rank,
                    .depth = linear->w.ins,
                    .a = input,
                    .a_stride = stride,
                    .b = columns_of(lora.a, lora.a_stride),
                    .c = between,
                    .c_stride = lora_stride_});
    if (!y) continue;
    body_.multiply({.rows = rows_,
                    .columns = linear->w.outs,
                    .depth = lora.rank,
                    .a = between,
                    .a_stride = lora_stride_,
                    .b = columns_of(lora.b, lora.stride),
                    .c = y,
                    .c_stride = stride_of(*linear),
                    .factor = lora.scale,
                    .add = true});
  }
}

void cpu_train_pass::apply_back(const trained_linear& linear, const activations& a, std::size_t slot, const float* x,
                                std::int64_t x_stride, const float* dy, std::int64_t dy_stride, float* dx, bool add) {
  give_way();
  if (dx) body_.backward(dy, dy_stride, rows_, linear.w, dx, x_stride, add);
  if (linear.w.gradient) weights_back(linear, x, x_stride, dy, dy_stride);
  if (linear.lora.rank > 0) lora_back(linear, a, slot, x, x_stride, dy, dy_stride, dx);
}

void cpu_train_pass::weights_back(const trained_linear& linear, const float* x, std::int64_t x_stride, const float* dy,
                                  std::int64_t dy_stride) {
  const trained_matrix& w = linear.w;
  body_.multiply({.rows = w.outs,
                  .columns = w.ins,
                  .depth = rows_,
                  .a = dy,
                  .a_stride = dy_stride,
                  .a_transposed = true,
                  .b = rows_of(x, x_stride),
                  .c = w.gradient,
                  .c_stride = w.stride,
                  .add = true});
  if (!linear.bias_gradient) return;
  constexpr std::int64_t columns = 64;
  const std::int64_t width = rounded_up(w.outs, 16);
  with_.pool.run(static_cast<int>((width + columns - 1) / columns), [&](int task, int) {
    const std::int64_t first = task * columns;
    for (std::int64_t r = 0; r < rows_; ++r)
      with_.kernels.add(dy + r * dy_stride + first, std::min(columns, width - first), linear.bias_gradient + first);
  });
}

void cpu_train_pass::lora_back(const trained_linear& linear, const activations& a, std::size_t slot, const float* x,
                               std::int64_t x_stride, const float* dy, std::int64_t dy_stride, float* dx) {
  const lora_factors& lora = linear.lora;
  const std::int64_t outs = linear.w.outs, ins = linear.w.ins;
  const float* between = a.lora.data() + static_cast<std::int64_t>(slot) * options_.most_rows * lora_stride_;
  float* gradient = lora_gradient_.data();
  body_.multiply({.rows = outs,
                  .columns = lora.rank,
                  .depth = rows_,
                  .a = dy,
                  .a_stride = dy_stride,
                  .a_transposed = true,
                  .b = rows_of(between, lora_stride_),
                  .c = lora.b_gradient,
                  .c_stride = lora.stride,
                  .factor = lora.scale,
                  .add = true});
  body_.multiply({.rows = rows_,
                  .columns = lora.rank,
                  .depth = outs,
                  .a = dy,
                  .a_stride = dy_stride,
                  .b = rows_of(lora.b, lora.stride),
                  .c = gradient,
                  .c_stride = lora_stride_,
                  .factor = lora.scale});
  body_.multiply({.rows = lora.rank,
                  .columns = ins,
                  .depth = rows_,
                  .a = gradient,
                  .a_stride = lora_stride_,
                  .a_transposed = true,
                  .b = rows_of(dropped(lora, x, x_stride, ins), x_stride),
                  .c = lora.a_gradient,
                  .c_stride = lora.a_stride,
                  .add = true});
  if (!dx) return;
  const bool masked = dropout_.probability > 0;
  body_.multiply({.rows = rows_,
                  .columns = ins,
                  .depth = lora.rank,
                  .a = gradient,
                  .a_stride = lora_stride_,
                  .b = rows_of(lora.a, lora.a_stride),
                  .c = masked ? dropped_.data() : dx,
                  .c_stride = x_stride,
                  .add = !masked});
  if (!masked) return;
  dropout_key key = dropout_;
  key.stream = lora.stream;
  for_rows(rows_, [&](std::int64_t r, int) {
    float* row = dropped_.data() + r * x_stride;
    kernels_.drop(key, r, row, ins, row);
    with_.kernels.add(row, ins, dx + r * x_stride);
  });
}

}  // namespace troupe
