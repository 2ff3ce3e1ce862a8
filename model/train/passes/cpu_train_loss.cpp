// The end of a pass: logits of the rows that have a target, some rows at a time, so that they never exist whole.
#include <algorithm>

#include "base/to_size.hpp"
#include "model/train/passes/cpu_train_pass.hpp"

namespace troupe {

pass_result cpu_train_pass::loss(const training_rows& batch, float factor, bool backward) {
  std::vector<std::int64_t> rows;
  for (std::int64_t r = 0; r < rows_; ++r)
    if (batch.targets[to_size(r)] >= 0) rows.push_back(r);
  pass_result total;
  for (std::size_t at = 0; at < rows.size(); at += to_size(loss_rows_)) {
    const auto chunk = std::span(rows).subspan(at, std::min(rows.size() - at, to_size(loss_rows_)));
    total.add(loss_chunk(batch, chunk, factor, backward));
  }
  return total;
}

pass_result cpu_train_pass::loss_chunk(const training_rows& batch, std::span<const std::int64_t> rows, float factor,
                                       bool backward) {
  give_way();
  final_logits(rows);
  const float scale = model_.config.logit_factor, cap = model_.config.logit_cap;
  std::vector<train_kernel_table::cross_entropy_result> results(rows.size());
  for_rows(static_cast<std::int64_t>(rows.size()), [&](std::int64_t i, int) {
    const std::int32_t target = batch.targets[to_size(rows[to_size(i)])];
    float* const logits = logits_.data() + i * logit_stride_;
    float* const slopes = cap != 0 ? slopes_.data() + i * logit_stride_ : nullptr;
    if (cap != 0)
      kernels_.cap(logits, logit_stride_, scale, cap, slopes);
    else if (scale != 1)
      with_.kernels.multiply(logits, logit_stride_, scale);
    results[to_size(i)] =
        kernels_.cross_entropy(logits, model_.config.vocab_size, target, cap != 0 ? factor : factor * scale);
    if (cap != 0) kernels_.scale(logits, slopes, logit_stride_, logits);
  });
  pass_result total;
  for (const auto& row : results) total.add_row(row);
  if (backward) head_back(rows);
  return total;
}

/// final_ and logits_ of the rows.
void cpu_train_pass::final_logits(std::span<const std::int64_t> rows) {
  const auto count = static_cast<std::int64_t>(rows.size());
  const float_rows hidden = hidden_rows(inputs_.back()), final = hidden_rows(final_);
  for_rows(count,
           [&](std::int64_t i, int) { std::copy_n(hidden.row(rows[to_size(i)]), strides_.hidden, final.row(i)); });
  normalize(model_.final_norm, final, count, final);
  const products::output out{&model_.head, nullptr, {logits_.data(), logit_stride_}};
  head_.forward(final, count, std::span(&out, 1));
}

/// From the gradients of the chunk's logits, which are now in logits_, to those of the last layer's output and of the
/// weights that are trained.
void cpu_train_pass::head_back(std::span<const std::int64_t> rows) {
  const auto count = static_cast<std::int64_t>(rows.size());
  const float_rows dy = hidden_rows(final_gradient_);
  head_.backward({logits_.data(), logit_stride_}, count, model_.head, dy, into::set);
  if (model_.head.gradient) head_weights_back(count);
  normalize_back(model_.final_norm, hidden_rows(inputs_.back()), rows, dy, hidden_rows(gradient_));
}

void cpu_train_pass::head_weights_back(std::int64_t count) {
  head_.multiply({.rows = model_.config.vocab_size,
                  .columns = model_.config.hidden,
                  .depth = count,
                  .a = {logits_.data(), logit_stride_},
                  .a_transposed = true,
                  .b = as_rows(hidden_rows(final_)),
                  .c = {model_.head.gradient, model_.head.stride},
                  .how = into::add});
}

}  // namespace troupe
