#pragma once
#include "model/train/passes/cpu_train_rows.hpp"

namespace troupe {

/// The end of a pass: logits of the rows that have a target, some rows at a time, so that they never exist whole.
class cpu_train_loss {
 public:
  explicit cpu_train_loss(cpu_train_rows& rows);

  /// Of what leaves the last layer. Backward, scratch().gradient and the gradients of the head get what factor * the
  /// loss means for them.
  pass_result run(const training_rows& batch, const_float_rows hidden, float factor, bool backward);

 private:
  pass_result run_some(const training_rows& batch, std::span<const std::int64_t> rows, const_float_rows hidden,
                       float factor);
  void make_logits(std::span<const std::int64_t> rows, const_float_rows hidden);
  void head_back(std::span<const std::int64_t> rows, const_float_rows hidden);
  void head_weights_back(std::int64_t count);

  cpu_train_rows& rows_;
  const model_config& config_;
  std::int64_t rows_at_once_;
  products head_;
  row_memory final_, dfinal_;  ///< final_: normalized
  row_memory logits_;          ///< and then their gradients
  row_memory slopes_;          ///< of capped logits
};

}  // namespace troupe
