#pragma once
#include "model/train/passes/cpu_train_rows.hpp"

namespace troupe {

/// A layer of short convolutions.
class cpu_train_convolution {
 public:
  explicit cpu_train_convolution(cpu_train_rows& rows) : rows_(rows) {}

  void forward(const layer_rows& at, float_rows out);
  void backward(const layer_rows& at, const_float_rows given, gradient_target to);

 private:
  /// A segment's rows, some columns of them: work(column_task).
  template <class Work>
  void for_columns(const training_rows& batch, Work work);

  cpu_train_rows& rows_;
};

}  // namespace troupe
