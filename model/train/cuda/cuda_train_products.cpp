// A pass's products: linear layers with their adapters, there and back, and the logits that the loss is made of.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/to_size.hpp"
#include "model/arch/cuda/device_row_steps.hpp"
#include "model/arch/device.hpp"
#include "model/train/cuda/cuda_train_pass.hpp"

namespace troupe {

/// Where weights are rounded to bf16 alone, products are what libraries do. Weights are kept as the library reads them
/// if that takes at most half of the memory that is left.
void cuda_train_pass::take_library() {
  const std::int64_t kept_bytes = library_linears::kept_bytes(model_);
  if (options_.precision != train_precision::as_served || kept_bytes == 0) return;
  auto loaded = cuda::load_float_library(stream_);
  remark_ = fmt::format("{}: layers are multiplied with {}", name_of(options_.device),
                        loaded.library ? loaded.about : fmt::format("our own, slower kernels: {}", loaded.about));
  if (!loaded.library) return;
  const bool keeps = kept_bytes <= free_memory(options_.device).value_or(0) / 2;
  library_ = std::make_unique<library_linears>(std::move(loaded.library), model_, weights_, options_.most_rows, keeps);
  all_by_library_ = mlp_can_be_rounded_ = true;
  for (const layer_weights& layer : weights_.layers) {
    for (const linear_kind kind : every_linear)
      if (layer[kind].w.outs > 0 && !is_by_library(layer[kind].w)) all_by_library_ = false;
    if (!model_.config.gated_mlp || model_.config.is_geglu() || layer[linear_kind::gate].bias ||
        layer[linear_kind::up].bias)
      mlp_can_be_rounded_ = false;
  }
}

void cuda_train_pass::read(float_rows x, std::int64_t columns) {
  if (library_) library_->read(stream_, x, rows_.count(), columns);
}

library_linears::rows_of_layer cuda_train_pass::rows_of_layer(const device_linear& l, float_rows x) {
  library_linears::rows_of_layer made{.rows = rows_.count()};
  if (l.rank > 0 && dropout_.probability > 0) made.dropped = dropped(l, x);
  return made;
}

void cuda_train_pass::multiply(const cuda::weight_product& product) {
  if (is_by_library(product.w))
    library_->multiply(stream_, product);
  else if (options_.precision == train_precision::exact)
    cuda::multiply_exact(stream_, product);
  else
    cuda::multiply_rounded(stream_, product, options_.precision == train_precision::fine ? 2 : 1);
}

void cuda_train_pass::multiply(const cuda::float_product& product) {
  cuda::multiply(stream_, product, slices_.data());
}

void cuda_train_pass::apply(std::size_t layer, float_rows x, into how, std::initializer_list<linear_output> outputs) {
  for (const auto& [kind, y] : outputs)
    if (const device_linear l = linear_of(layer, kind); l.w.outs > 0) apply(l, x, y, how);
}

void cuda_train_pass::apply(const device_linear& l, float_rows x, float_rows y, into how) {
  const int rows = rows_.count();
  if (is_by_library(l.w)) return library_->forward(stream_, l, rows_of_layer(l, x), y, how);
  if (y.data) multiply({.w = l.w, .rows = rows, .x = x, .y = y, .bias = l.bias, .how = how});
  if (l.rank == 0) return;
  multiply({.rows = rows,
            .columns = l.rank,
            .depth = l.w.ins,
            .a = cuda::factor_of(dropped(l, x)),
            .b = cuda::factor_of(l.a, true),
            .c = l.between});
  if (!y.data) return;
  multiply({.rows = rows,
            .columns = l.w.outs,
            .depth = l.rank,
            .a = cuda::factor_of(l.between),
            .b = cuda::factor_of(l.b, true),
            .c = y,
            .factor = l.scale,
            .how = into::add});
}

void cuda_train_pass::apply_to_sum(const device_linear& l, float_rows x, const buffer& before, const buffer* sum) {
  if (sum && is_by_library(l.w) && !l.bias) {
    library_linears::rows_of_layer rows = rows_of_layer(l, x);
    rows.before = before.data();
    return library_->forward(stream_, l, rows, hidden_rows(*sum), into::add);
  }
  if (sum) cuda::copy(sum->data(), before.data(), to_size(rows_.count() * hidden_rows(*sum).stride), stream_);
  apply(l, x, sum ? hidden_rows(*sum) : float_rows{}, into::add);
}

void cuda_train_pass::apply_back(std::size_t layer, float_rows x, std::initializer_list<linear_gradient> given,
                                 gradient_target to) {
  for (const auto& [kind, dy] : given) {
    const device_linear l = linear_of(layer, kind);
    if (l.w.outs > 0) apply_back(l, x, dy, {to.rows, std::exchange(to.how, into::add)});
  }
}

void cuda_train_pass::apply_back(const device_linear& l, float_rows x, const_float_rows dy, gradient_target to) {
  if (is_by_library(l.w)) return back_by_library(l, x, dy, to);
  const auto& [dx, how] = to;
  if (dx.data) multiply({.w = l.w, .turned = true, .rows = rows_.count(), .x = dy, .y = dx, .how = how});
  if (l.rank == 0) return;
  lora_back(l, x, dy);
  if (dx.data) lora_input_back(l, dx);
}

void cuda_train_pass::back_by_library(const device_linear& l, float_rows x, const_float_rows dy, gradient_target to) {
  const library_linears::rows_of_layer rows = rows_of_layer(l, x);
  library_->back(stream_, l, rows, dy, to.rows, to.how);
  if (to.rows.data && rows.dropped.data) undrop(l, to.rows);
}

void cuda_train_pass::lora_back(const device_linear& l, float_rows x, const_float_rows dy) {
  const float_rows inner = rows_of(lora_gradient_, lora_width_), input = dropped(l, x);
  multiply({.rows = l.w.outs,
            .columns = l.rank,
            .depth = rows_.count(),
            .a = cuda::factor_of(dy, true),
            .b = cuda::factor_of(l.between),
            .c = l.b_gradient,
            .factor = l.scale,
            .how = into::add});
  multiply({.rows = rows_.count(),
            .columns = l.rank,
            .depth = l.w.outs,
            .a = cuda::factor_of(dy),
            .b = cuda::factor_of(l.b),
            .c = inner,
            .factor = l.scale});
  multiply({.rows = l.rank,
            .columns = l.w.ins,
            .depth = rows_.count(),
            .a = cuda::factor_of(inner, true),
            .b = cuda::factor_of(input),
            .c = l.a_gradient,
            .how = into::add});
}

void cuda_train_pass::lora_input_back(const device_linear& l, float_rows dx) {
  const bool masked = dropout_.probability > 0;
  multiply({.rows = rows_.count(),
            .columns = l.w.ins,
            .depth = l.rank,
            .a = cuda::factor_of(rows_of(lora_gradient_, lora_width_)),
            .b = cuda::factor_of(l.a),
            .c = masked ? float_rows{dropped_.data(), dx.stride} : dx,
            .how = masked ? into::set : into::add});
  if (masked) undrop(l, dx);
}

void cuda_train_pass::undrop(const device_linear& l, float_rows dx) {
  cuda::drop(stream_, {.mask = dropout_.of_stream(l.stream),
                       .rows = rows_.count(),
                       .n = l.w.ins,
                       .x = {dropped_.data(), dx.stride},
                       .out = dx,
                       .how = into::add});
}

float_rows cuda_train_pass::dropped(const device_linear& l, float_rows x) {
  if (dropout_.probability <= 0) return x;
  const float_rows out{dropped_.data(), x.stride};
  cuda::drop(stream_, {.mask = dropout_.of_stream(l.stream), .rows = rows_.count(), .n = l.w.ins, .x = x, .out = out});
  return out;
}

// --- the loss ---

/// Of the rows that have a target, some at a time, so that their logits never exist whole.
void cuda_train_pass::loss(float factor, bool backward) {
  const model_config& config = model_.config;
  const float_rows final = hidden_rows(final_), logits = rows_of(logits_, config.vocab_size);
  for (int first = 0; first < rows_.target_count(); first += static_cast<int>(loss_rows_)) {
    const int count = std::min(rows_.target_count() - first, static_cast<int>(loss_rows_));
    normalize_rows(stream_, config,
                   {.rows = count,
                    .n = config.hidden,
                    .x = hidden_rows(inputs_.back()),
                    .gather = rows_.picked() + first,
                    .weight = weights_.final_norm.weight,
                    .bias = weights_.final_norm.bias,
                    .eps = config.norm_eps,
                    .out = final});
    multiply({.w = weights_.head, .rows = count, .x = final, .y = logits});
    const bool is_capped = config.logit_cap != 0;
    const float_rows slopes = is_capped ? rows_of(slopes_, config.vocab_size) : float_rows{};
    if (config.logit_factor != 1 || is_capped)
      cuda::finish_logits(stream_, {.rows = count,
                                    .n = config.vocab_size,
                                    .logits = logits,
                                    .factor = config.logit_factor,
                                    .cap = config.logit_cap,
                                    .slopes = slopes});
    cuda::cross_entropy(stream_, {.rows = count,
                                  .n = config.vocab_size,
                                  .logits = logits,
                                  .targets = rows_.targets() + first,
                                  .factor = is_capped ? factor : factor * config.logit_factor,
                                  .results = losses_.data() + first,
                                  .slopes = slopes});
    if (backward) head_back(first, count);
    pace();
  }
}

/// From the gradients of some rows' logits to gradient_, the gradient of the last layer's output.
void cuda_train_pass::head_back(int first, int count) {
  const model_config& config = model_.config;
  const float_rows dy = hidden_rows(final_gradient_);
  multiply({.w = weights_.head, .turned = true, .rows = count, .x = rows_of(logits_, config.vocab_size), .y = dy});
  normalize_back({.rows = count,
                  .n = config.hidden,
                  .x = hidden_rows(inputs_.back()),
                  .gather = rows_.picked() + first,
                  .weight = weights_.final_norm.weight,
                  .eps = config.norm_eps,
                  .dy = dy,
                  .dx = hidden_rows(gradient_)});
}

}  // namespace troupe
