#include "model/train/passes/cpu_train_loss.hpp"

#include <algorithm>

namespace troupe {

cpu_train_loss::cpu_train_loss(cpu_train_rows& rows)
    : rows_(rows),
      config_(rows.config()),
      rows_at_once_(loss_rows(config_, rows.options().most_rows)),
      head_(rows.with(), rows.options().precision, rows_at_once_,
            std::max(config_.hidden, std::min<std::int64_t>(config_.vocab_size, 1 << 15))),
      final_(rows_at_once_, rows.strides().hidden),
      dfinal_(rows_at_once_, rows.strides().hidden),
      logits_(rows_at_once_, train_stride(config_.vocab_size)),
      slopes_(config_.logit_cap != 0 ? rows_at_once_ : 0, logits_.stride()) {}

pass_result cpu_train_loss::run(const training_rows& batch, const_float_rows hidden, float factor, bool backward) {
  std::vector<std::int64_t> rows;
  for (std::int64_t r = 0; r < batch.rows(); ++r)
    if (batch.targets[to_size(r)] >= 0) rows.push_back(r);
  pass_result total;
  for (std::size_t first = 0; first < rows.size(); first += to_size(rows_at_once_)) {
    const auto some = std::span(rows).subspan(first, std::min(rows.size() - first, to_size(rows_at_once_)));
    total.add(run_some(batch, some, hidden, factor));
    if (backward) head_back(some, hidden);
  }
  return total;
}

pass_result cpu_train_loss::run_some(const training_rows& batch, std::span<const std::int64_t> rows,
                                     const_float_rows hidden, float factor) {
  rows_.give_way();
  make_logits(rows, hidden);
  const train_kernel_table& kernels = rows_.train_kernels();
  const float scale = config_.logit_factor, cap = config_.logit_cap;
  std::vector<train_kernel_table::cross_entropy_result> results(rows.size());
  rows_.for_some(static_cast<std::int64_t>(rows.size()), [&](std::int64_t i, std::int64_t) {
    const std::int32_t target = batch.targets[to_size(rows[to_size(i)])];
    float *const logits = logits_.row(i), *const slopes = cap != 0 ? slopes_.row(i) : nullptr;
    if (cap != 0)
      kernels.cap(logits, logits_.stride(), scale, cap, slopes);
    else if (scale != 1)
      rows_.kernels().multiply(logits, logits_.stride(), scale);
    results[to_size(i)] = kernels.cross_entropy(logits, config_.vocab_size, target, cap != 0 ? factor : factor * scale);
    if (cap != 0) kernels.scale(logits, slopes, logits_.stride(), logits);
  });
  pass_result total;
  for (const auto& row : results) total.add_row(row);
  return total;
}

void cpu_train_loss::make_logits(std::span<const std::int64_t> rows, const_float_rows hidden) {
  const auto count = static_cast<std::int64_t>(rows.size());
  rows_.for_some(count, [&](std::int64_t i, std::int64_t) {
    std::copy_n(hidden.row(rows[to_size(i)]), hidden.stride, final_.row(i));
  });
  rows_.normalize(rows_.model().final_norm, final_, count, final_);
  const products::output out{&rows_.model().head, nullptr, logits_};
  head_.forward(final_, count, {&out, 1});
}

/// From the gradients of some rows' logits to those of the last layer's output and of the weights that are trained.
void cpu_train_loss::head_back(std::span<const std::int64_t> rows, const_float_rows hidden) {
  const auto count = static_cast<std::int64_t>(rows.size());
  const trained_model& model = rows_.model();
  head_.backward(logits_, count, model.head, dfinal_, into::set);
  if (model.head.gradient) head_weights_back(count);
  rows_.normalize_back(model.final_norm, hidden, rows, dfinal_, rows_.scratch().gradient);
}

void cpu_train_loss::head_weights_back(std::int64_t count) {
  const trained_matrix& head = rows_.model().head;
  head_.multiply({.rows = config_.vocab_size,
                  .columns = config_.hidden,
                  .depth = count,
                  .a = logits_,
                  .a_transposed = true,
                  .b = as_rows(final_),
                  .c = {head.gradient, head.stride},
                  .how = into::add});
}

}  // namespace troupe
