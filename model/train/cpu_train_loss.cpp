// The end of a pass: logits of the rows that have a target, some rows at a time, so that they never exist whole.
#include <algorithm>

#include "model/engine/logarithm.hpp"
#include "model/train/cpu_train_pass.hpp"

namespace troupe {

pass_result cpu_train_pass::loss(const training_rows& batch, const float* hidden, float factor, bool backward) {
  std::vector<std::int64_t> rows;
  for (std::int64_t r = 0; r < rows_; ++r)
    if (batch.targets[static_cast<std::size_t>(r)] >= 0) rows.push_back(r);
  pass_result total;
  for (std::size_t at = 0; at < rows.size(); at += static_cast<std::size_t>(loss_rows_)) {
    const auto chunk = std::span(rows).subspan(at, std::min(rows.size() - at, static_cast<std::size_t>(loss_rows_)));
    total.add(loss_chunk(batch, chunk, hidden, factor, backward));
  }
  return total;
}

pass_result cpu_train_pass::loss_chunk(const training_rows& batch, std::span<const std::int64_t> rows,
                                       const float* hidden, float factor, bool backward) {
  give_way();
  const auto count = static_cast<std::int64_t>(rows.size());
  const model_config& config = model_.config;
  for_rows(count, [&](std::int64_t i, int) {
    std::copy_n(hidden + rows[static_cast<std::size_t>(i)] * hidden_, hidden_, final_.data() + i * hidden_);
  });
  normalize(model_.final_norm, final_.data(), count, final_.data());
  const products::output out{&model_.head, nullptr, logits_.data(), logit_stride_, false};
  head_.forward(final_.data(), hidden_, count, std::span(&out, 1));
  std::vector<train_kernel_table::cross_entropy_result> results(rows.size());
  for_rows(count, [&](std::int64_t i, int) {
    const auto at = static_cast<std::size_t>(i);
    results[at] = kernels_.cross_entropy(logits_.data() + i * logit_stride_, config.vocab_size,
                                         batch.targets[static_cast<std::size_t>(rows[at])], factor);
  });
  pass_result total;
  for (const auto& r : results) {
    total.loss += logarithm(r.sum) + static_cast<double>(r.most) - static_cast<double>(r.target);
    total.correct += r.leads;
    ++total.targets;
  }
  if (backward) head_back(rows, hidden);
  return total;
}

/// From the gradients of the chunk's logits to gradient_, the gradient of the last layer's output.
void cpu_train_pass::head_back(std::span<const std::int64_t> rows, const float* hidden) {
  const auto count = static_cast<std::int64_t>(rows.size());
  const model_config& config = model_.config;
  head_.backward(logits_.data(), logit_stride_, count, model_.head, final_gradient_.data(), hidden_, false);
  if (model_.head.gradient)
    head_.multiply({.rows = config.vocab_size,
                    .columns = config.hidden,
                    .depth = count,
                    .a = logits_.data(),
                    .a_stride = logit_stride_,
                    .a_transposed = true,
                    .b = rows_of(final_.data(), hidden_),
                    .c = model_.head.gradient,
                    .c_stride = model_.head.stride,
                    .add = true});
  const trained_norm& norm = model_.final_norm;
  const std::int64_t most = (count + 15) / 16;
  float* partial = norm.weight_gradient ? norm_gradients_.data() : nullptr;
  if (partial) std::fill_n(partial, most * 2 * hidden_, 0.0f);
  for_rows(count, [&](std::int64_t i, int task) {
    const std::int64_t at = rows[static_cast<std::size_t>(i)] * hidden_;
    const float* dy = final_gradient_.data() + i * hidden_;
    float* own = partial ? partial + task * 2 * hidden_ : nullptr;
    if (config.norm == norm_kind::rms)
      kernels_.rms_norm_back(hidden + at, norm.weight, dy, config.hidden, config.norm_eps, gradient_.data() + at, own);
    else
      kernels_.layer_norm_back(hidden + at, norm.weight, dy, config.hidden, config.norm_eps, gradient_.data() + at, own,
                               own ? own + hidden_ : nullptr);
  });
  for (std::int64_t task = 0; partial && task < most; ++task) {
    with_.kernels.add(partial + task * 2 * hidden_, config.hidden, norm.weight_gradient);
    if (norm.bias_gradient) with_.kernels.add(partial + (task * 2 + 1) * hidden_, config.hidden, norm.bias_gradient);
  }
}

}  // namespace troupe
