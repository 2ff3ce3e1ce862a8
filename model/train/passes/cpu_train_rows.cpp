#include "model/train/passes/cpu_train_rows.hpp"

#include <algorithm>
#include <numeric>

namespace troupe {

cpu_train_rows::cpu_train_rows(const trained_model& model, const compute& with, const train_pass::options& chosen)
    : model_(model),
      with_(with),
      kernels_(train_kernels_like(with.kernels)),
      options_(chosen),
      strides_(model),
      scratch_(make_scratch(model.config, strides_, chosen.most_rows)),
      body_(with, chosen.precision, chosen.most_rows, strides_.widest),
      norm_gradients_(to_size(ceil_div(chosen.most_rows, rows_per_task) * 2 * norm_stride())),
      row_numbers_(to_size(chosen.most_rows)) {
  std::iota(row_numbers_.begin(), row_numbers_.end(), 0);
}

void cpu_train_rows::begin(std::int64_t rows, const dropout_key& dropout) {
  count_ = rows;
  dropout_ = dropout;
}

/// They are equally far apart.
void cpu_train_rows::copy(const_float_rows from, float_rows to) const {
  std::copy_n(from.data, count_ * from.stride, to.data);
}

void cpu_train_rows::clear(float_rows rows) const {
  std::fill_n(rows.data, count_ * rows.stride, 0.0f);
}

gradient_target cpu_train_rows::input_gradient() const {
  if (config().input_norms) return {inner(), into::set};
  return {scratch_.gradient, into::add};
}

}  // namespace troupe
