// A pass's products: linear layers with their adapters, there and back, and the logits that the loss is made of.
#include <algorithm>

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

library_linears::layer cuda_train_pass::layer_of(const linear& l) const {
  library_linears::layer made{.w = l.weights.w, .bias = l.weights.bias};
  const lora_factors& lora = l.lora;
  if (lora.rank == 0) return made;
  made.rank = lora.rank, made.scale = lora.scale;
  made.a = {parameters_.value(lora.a), lora.a_stride}, made.b = {parameters_.value(lora.b), lora.stride};
  made.a_gradient = {parameters_.gradient(lora.a_gradient), lora.a_stride};
  made.b_gradient = {parameters_.gradient(lora.b_gradient), lora.stride};
  return made;
}

library_linears::rows_of_layer cuda_train_pass::rows_of_layer(const linear& l, const activations& a, float_rows x) {
  library_linears::rows_of_layer made{.rows = rows_.count(),
                                      .between = rounded_rows_of(a.lora[to_size(l.kind)], lora_width_)};
  if (l.lora.rank > 0 && dropout_.probability > 0) made.dropped = dropped(l, x);
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

void cuda_train_pass::apply(const linear& l, float_rows x, const activations& a, float_rows y, into how) {
  const int rows = rows_.count();
  const std::int64_t ins = l.weights.w.ins, outs = l.weights.w.outs;
  if (is_by_library(l.weights.w)) return library_->forward(stream_, layer_of(l), rows_of_layer(l, a, x), y, how);
  if (y.data) multiply({.w = l.weights.w, .rows = rows, .x = x, .y = y, .bias = l.weights.bias, .how = how});
  const lora_factors& lora = l.lora;
  if (lora.rank == 0) return;
  const float_rows input = dropped(l, x), between = rows_of(a.lora[to_size(l.kind)], lora_width_);
  multiply({.rows = rows,
            .columns = lora.rank,
            .depth = ins,
            .a = {input.data, input.stride},
            .b = {parameters_.value(lora.a), lora.a_stride, true},
            .c = between});
  if (!y.data) return;
  multiply({.rows = rows,
            .columns = outs,
            .depth = lora.rank,
            .a = {between.data, between.stride},
            .b = {parameters_.value(lora.b), lora.stride, true},
            .c = y,
            .factor = lora.scale,
            .how = into::add});
}

void cuda_train_pass::apply_to_sum(const linear& l, float_rows x, const activations& a, const buffer& before,
                                   const buffer* sum) {
  if (sum && is_by_library(l.weights.w) && !l.weights.bias) {
    library_linears::rows_of_layer rows = rows_of_layer(l, a, x);
    rows.before = before.data();
    return library_->forward(stream_, layer_of(l), rows, hidden_rows(*sum), into::add);
  }
  if (sum) cuda::copy(sum->data(), before.data(), to_size(rows_.count() * hidden_rows(*sum).stride), stream_);
  apply(l, x, a, sum ? hidden_rows(*sum) : float_rows{}, into::add);
}

void cuda_train_pass::apply_back(const linear& l, const activations& a, float_rows x, float_rows dy, float_rows dx,
                                 into how) {
  if (is_by_library(l.weights.w)) return back_by_library(l, a, x, dy, dx, how);
  if (dx.data) multiply({.w = l.weights.w, .turned = true, .rows = rows_.count(), .x = dy, .y = dx, .how = how});
  if (l.lora.rank > 0) lora_back(l, a, x, dy, dx);
}

void cuda_train_pass::back_by_library(const linear& l, const activations& a, float_rows x, float_rows dy, float_rows dx,
                                      into how) {
  const library_linears::rows_of_layer rows = rows_of_layer(l, a, x);
  library_->back(stream_, layer_of(l), rows, dy, dx, how);
  if (dx.data && rows.dropped.data) undrop(l, dx);
}

void cuda_train_pass::lora_back(const linear& l, const activations& a, float_rows x, float_rows dy, float_rows dx) {
  const lora_factors& lora = l.lora;
  const std::int64_t rows = rows_.count(), ins = l.weights.w.ins, outs = l.weights.w.outs;
  const float_rows between = rows_of(a.lora[to_size(l.kind)], lora_width_);
  const float_rows inner = rows_of(lora_gradient_, lora_width_), input = dropped(l, x);
  multiply({.rows = outs,
            .columns = lora.rank,
            .depth = rows,
            .a = {dy.data, dy.stride, true},
            .b = {between.data, between.stride},
            .c = {parameters_.gradient(lora.b_gradient), lora.stride},
            .factor = lora.scale,
            .how = into::add});
  multiply({.rows = rows,
            .columns = lora.rank,
            .depth = outs,
            .a = {dy.data, dy.stride},
            .b = {parameters_.value(lora.b), lora.stride},
            .c = inner,
            .factor = lora.scale});
  multiply({.rows = lora.rank,
            .columns = ins,
            .depth = rows,
            .a = {inner.data, inner.stride, true},
            .b = {input.data, input.stride},
            .c = {parameters_.gradient(lora.a_gradient), lora.a_stride},
            .how = into::add});
  if (dx.data) lora_input_back(l, dx);
}

void cuda_train_pass::lora_input_back(const linear& l, float_rows dx) {
  const lora_factors& lora = l.lora;
  const std::int64_t ins = l.weights.w.ins;
  const float_rows inner = rows_of(lora_gradient_, lora_width_);
  const bool masked = dropout_.probability > 0;
  const float_rows to = masked ? float_rows{dropped_.data(), dx.stride} : dx;
  multiply({.rows = rows_.count(),
            .columns = ins,
            .depth = lora.rank,
            .a = {inner.data, inner.stride},
            .b = {parameters_.value(lora.a), lora.a_stride},
            .c = to,
            .how = masked ? into::set : into::add});
  if (masked) undrop(l, dx);
}

void cuda_train_pass::undrop(const linear& l, float_rows dx) {
  cuda::drop(stream_, {.mask = dropout_.of_stream(l.lora.stream),
                       .rows = rows_.count(),
                       .n = l.weights.w.ins,
                       .x = {dropped_.data(), dx.stride},
                       .out = dx,
                       .how = into::add});
}

float_rows cuda_train_pass::dropped(const linear& l, float_rows x) {
  if (dropout_.probability <= 0) return x;
  const float_rows out{dropped_.data(), x.stride};
  cuda::drop(
      stream_,
      {.mask = dropout_.of_stream(l.lora.stream), .rows = rows_.count(), .n = l.weights.w.ins, .x = x, .out = out});
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
