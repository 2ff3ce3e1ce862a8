// Linear layers, with the adapters beside them, forward and backward.
#include <algorithm>

#include "model/train/passes/cpu_train_rows.hpp"

namespace troupe {

const_float_rows cpu_train_rows::dropped(const lora_factors& lora, const_float_rows x, std::int64_t width) const {
  if (dropout_.probability <= 0) return x;
  const float_rows out = scratch_.dropped.as(x.stride);
  const dropout_key key = dropout_.of_stream(lora.stream);
  for_each([&](std::int64_t r) {
    float* row = out.row(r);
    kernels_.drop(key, r, x.row(r), width, row);
    std::fill(row + width, row + rounded_up(width, 16), 0.0f);
  });
  return out;
}

void cpu_train_rows::apply(const layer_rows& at, const_float_rows x, into how,
                           std::initializer_list<linear_output> outputs) {
  give_way();
  std::vector<products::output> base;
  for (const auto& [kind, y] : outputs)
    if (const trained_linear& linear = at.weights[kind]; linear.w.outs > 0 && y.data)
      base.push_back({&linear.w, linear.bias, y, how});
  if (!base.empty()) body_.forward(x, count_, base);
  for (const auto& [kind, y] : outputs) {
    const trained_linear& linear = at.weights[kind];
    const lora_factors& lora = linear.lora;
    if (lora.rank == 0) continue;
    const float_rows between = at.a.lora[to_size(kind)];
    body_.multiply({.rows = count_,
                    .columns = lora.rank,
                    .depth = linear.w.ins,
                    .a = dropped(lora, x, linear.w.ins),
                    .b = as_columns({lora.a, lora.a_stride}),
                    .c = between});
    if (!y.data) continue;
    body_.multiply({.rows = count_,
                    .columns = linear.w.outs,
                    .depth = lora.rank,
                    .a = between,
                    .b = as_columns({lora.b, lora.stride}),
                    .c = y,
                    .factor = lora.scale,
                    .how = into::add});
  }
}

void cpu_train_rows::apply_back(const layer_rows& at, const_float_rows x, std::initializer_list<linear_gradient> given,
                                gradient_target to) {
  auto& [dx, how] = to;
  for (const auto& [kind, dy] : given) {
    const trained_linear& linear = at.weights[kind];
    if (linear.w.outs == 0) continue;
    give_way();
    if (dx.data) body_.backward(dy, count_, linear.w, dx, std::exchange(how, into::add));
    if (linear.w.gradient) weights_back(linear, x, dy);
    if (linear.lora.rank == 0) continue;
    lora_back(linear, at.a.lora[to_size(kind)], x, dy);
    if (dx.data) lora_input_back(linear, dx);
  }
}

void cpu_train_rows::add_output(const layer_rows& at, linear_kind kind, const_float_rows x, const_float_rows in,
                                float_rows out) {
  if (!config().output_norms) {
    if (out.data) copy(in, out);
    return apply(at, x, into::add, {{kind, out}});
  }
  const bool feeds = is_mlp(kind);
  const float_rows made = feeds ? at.a.fed : at.a.attended;
  apply(at, x, into::set, {{kind, made}});
  if (out.data) add_normalized(feeds ? at.weights.mlp_output_norm : at.weights.attention_output_norm, in, made, out);
}

void cpu_train_rows::read_back(const layer_rows& at, std::initializer_list<linear_gradient> given, gradient_target to) {
  normalize(at.weights.attention_norm, at.in, scratch_.normed);
  apply_back(at, scratch_.normed, given, to);
}

void cpu_train_rows::weights_back(const trained_linear& linear, const_float_rows x, const_float_rows dy) {
  const trained_matrix& w = linear.w;
  body_.multiply({.rows = w.outs,
                  .columns = w.ins,
                  .depth = count_,
                  .a = dy,
                  .a_transposed = true,
                  .b = as_rows(x),
                  .c = {w.gradient, w.stride},
                  .how = into::add});
  if (!linear.bias_gradient) return;
  constexpr std::int64_t columns = 64;
  const std::int64_t width = rounded_up(w.outs, 16);
  with_.pool.run_pieces(width, columns, [&](std::int64_t first, std::int64_t count, int) {
    for (std::int64_t r = 0; r < count_; ++r) kernels().add(dy.row(r) + first, count, linear.bias_gradient + first);
  });
}

void cpu_train_rows::lora_back(const trained_linear& linear, const_float_rows between, const_float_rows x,
                               const_float_rows dy) {
  const lora_factors& lora = linear.lora;
  const std::int64_t outs = linear.w.outs, ins = linear.w.ins;
  const float_rows inner = scratch_.dlora;
  body_.multiply({.rows = outs,
                  .columns = lora.rank,
                  .depth = count_,
                  .a = dy,
                  .a_transposed = true,
                  .b = as_rows(between),
                  .c = {lora.b_gradient, lora.stride},
                  .factor = lora.scale,
                  .how = into::add});
  body_.multiply({.rows = count_,
                  .columns = lora.rank,
                  .depth = outs,
                  .a = dy,
                  .b = as_rows({lora.b, lora.stride}),
                  .c = inner,
                  .factor = lora.scale});
  body_.multiply({.rows = lora.rank,
                  .columns = ins,
                  .depth = count_,
                  .a = inner,
                  .a_transposed = true,
                  .b = as_rows(dropped(lora, x, ins)),
                  .c = {lora.a_gradient, lora.a_stride},
                  .how = into::add});
}

void cpu_train_rows::lora_input_back(const trained_linear& linear, float_rows dx) {
  const lora_factors& lora = linear.lora;
  const std::int64_t ins = linear.w.ins;
  const bool masked = dropout_.probability > 0;
  const float_rows to = masked ? scratch_.dropped.as(dx.stride) : dx;
  body_.multiply({.rows = count_,
                  .columns = ins,
                  .depth = lora.rank,
                  .a = scratch_.dlora,
                  .b = as_rows({lora.a, lora.a_stride}),
                  .c = to,
                  .how = masked ? into::set : into::add});
  if (!masked) return;
  const dropout_key key = dropout_.of_stream(lora.stream);
  for_each([&](std::int64_t r) {
    float* row = to.row(r);
    kernels_.drop(key, r, row, ins, row);
    kernels().add(row, ins, dx.row(r));
  });
}

}  // namespace troupe
