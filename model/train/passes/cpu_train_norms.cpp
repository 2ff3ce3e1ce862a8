// Norms of rows, forward and backward.
#include <algorithm>

#include "model/arch/row_steps.hpp"
#include "model/train/passes/cpu_train_rows.hpp"

namespace troupe {

void cpu_train_rows::normalize(const trained_norm& norm, const_float_rows x, std::int64_t rows, float_rows out) const {
  for_some(rows, [&](std::int64_t r, std::int64_t) {
    if (norm.weight)
      normalize_row(kernels(), config(), {norm.weight, norm.bias}, x.row(r), out.row(r));
    else
      std::copy_n(x.row(r), strides_.hidden, out.row(r));
  });
}

void cpu_train_rows::add_normalized(const trained_norm& norm, const_float_rows in, const_float_rows made,
                                    float_rows out) const {
  normalize(norm, made, out);
  for_each([&](std::int64_t r) { kernels().add(in.row(r), config().hidden, out.row(r)); });
}

void cpu_train_rows::normalize_heads_back(const trained_norm& norm, std::int64_t width, const_float_rows x,
                                          float_rows dy, float_rows free) {
  clear(free);
  normalize_back(norm, width, x, every(), dy, free);
  copy(free, dy);
}

void cpu_train_rows::normalize_back(const trained_norm& norm, const_float_rows x, std::span<const std::int64_t> rows,
                                    const_float_rows dy, float_rows dx) {
  normalize_back(norm, config().hidden, x, rows, dy, dx);
}

void cpu_train_rows::normalize_back(const trained_norm& norm, std::int64_t width, const_float_rows x,
                                    std::span<const std::int64_t> rows, const_float_rows dy, float_rows dx) {
  const auto count = static_cast<std::int64_t>(rows.size()), tasks = ceil_div(count, rows_per_task);
  const std::int64_t stride = norm_stride();
  float* partial = norm.weight_gradient ? norm_gradients_.data() : nullptr;
  if (partial) std::fill_n(partial, tasks * 2 * stride, 0.0f);
  for_some(count, [&](std::int64_t i, std::int64_t task) {
    const std::int64_t at = rows[to_size(i)];
    float *own = partial ? partial + task * 2 * stride : nullptr, *to = dx.row(at);
    if (config().norm == norm_kind::rms)
      kernels_.rms_norm_back(x.row(at), norm.weight, dy.row(i), width, config().norm_eps, to, own);
    else
      kernels_.layer_norm_back(x.row(at), norm.weight, dy.row(i), width, config().norm_eps, to, own,
                               own ? own + stride : nullptr);
  });
  for (std::int64_t task = 0; partial && task < tasks; ++task) {
    kernels().add(partial + task * 2 * stride, width, norm.weight_gradient);
    if (norm.bias_gradient) kernels().add(partial + (task * 2 + 1) * stride, width, norm.bias_gradient);
  }
}

const_float_rows cpu_train_rows::output_gradient(const trained_norm& norm, const row_memory& made) {
  if (!config().output_norms) return scratch_.gradient;
  clear(scratch_.normed);
  normalize_back(norm, made, scratch_.gradient, scratch_.normed);
  return scratch_.normed;
}

}  // namespace troupe
