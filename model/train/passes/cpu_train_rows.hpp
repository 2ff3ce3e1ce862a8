#pragma once
#include <initializer_list>
#include <span>
#include <utility>

#include "base/rounding.hpp"
#include "model/lora/adapter.hpp"
#include "model/ops/dropout.hpp"
#include "model/train/passes/cpu_train_memory.hpp"
#include "model/train/passes/linear_rows.hpp"

namespace troupe {

/// A layer that the rows of a pass go through.
struct layer_rows {
  const training_rows& batch;
  std::int64_t layer;
  const trained_layer& weights;
  layer_activations& a;
  const_float_rows in;  ///< what it reads
};

/// What all parts of a layer do with a pass's rows, forward and backward: norms, and linear layers with the adapters
/// beside them.
class cpu_train_rows {
 public:
  cpu_train_rows(const trained_model& model, const compute& with, const train_pass::options& chosen);

  /// So many rows follow.
  void begin(std::int64_t rows, const dropout_key& dropout);

  const trained_model& model() const { return model_; }
  const model_config& config() const { return model_.config; }
  const compute& with() const { return with_; }
  const kernel_table& kernels() const { return with_.kernels; }
  const train_kernel_table& train_kernels() const { return kernels_; }
  const train_pass::options& options() const { return options_; }
  const row_strides& strides() const { return strides_; }
  const scratch_rows& scratch() const { return scratch_; }
  products& body() { return body_; }
  std::int64_t count() const { return count_; }
  std::span<const std::int64_t> every() const { return {row_numbers_.data(), to_size(count_)}; }
  /// scratch().inner as wide as most rows are.
  float_rows inner() const { return scratch_.inner.as(strides_.hidden); }
  float_rows middle_of(const layer_activations& a) const { return a.middle.is_empty() ? scratch_.middle : a.middle; }
  void give_way() const {
    if (options_.between) options_.between();
  }

  /// work(row) for all.
  template <class Work>
  void for_each(Work work) const {
    for_some(count_, [&](std::int64_t row, std::int64_t) { work(row); });
  }
  /// work(row, task) for the first ones.
  template <class Work>
  void for_some(std::int64_t rows, Work work) const {
    with_.pool.run_pieces(rows, rows_per_task, [&](std::int64_t first, std::int64_t count, int) {
      for (std::int64_t row = first; row < first + count; ++row) work(row, first / rows_per_task);
    });
  }
  void copy(const_float_rows from, float_rows to) const;
  void clear(float_rows rows) const;

  // cpu_train_norms.cpp
  /// Without weights there is no norm: rows are copied.
  void normalize(const trained_norm& norm, const_float_rows x, std::int64_t rows, float_rows out) const;
  void normalize(const trained_norm& norm, const_float_rows x, float_rows out) const {
    normalize(norm, x, count_, out);
  }
  /// out = in + norm(made)
  void add_normalized(const trained_norm& norm, const_float_rows in, const_float_rows made, float_rows out) const;
  /// dx += what dy, which has a row for each of `rows` of x, means for the input of the norm.
  void normalize_back(const trained_norm& norm, const_float_rows x, std::span<const std::int64_t> rows,
                      const_float_rows dy, float_rows dx);
  void normalize_back(const trained_norm& norm, const_float_rows x, const_float_rows dy, float_rows dx) {
    normalize_back(norm, x, every(), dy, dx);
  }
  /// The same of a norm over all heads, in the place of dy; `free` is for rows of this width.
  void normalize_heads_back(const trained_norm& norm, std::int64_t width, const_float_rows x, float_rows dy,
                            float_rows free);
  /// The gradient of what attention or mlp gave: scratch().gradient, or through its norm in scratch().normed.
  const_float_rows output_gradient(const trained_norm& norm, const row_memory& made);
  /// Where the gradient of what attention or mlp reads goes: without norms before them to that of the rows.
  gradient_target input_gradient() const;

  // cpu_train_linears.cpp
  /// y = or += x W^T + bias + adapters, for linears that share x. Where y is null only their rows of a.lora are made.
  void apply(const layer_rows& at, const_float_rows x, into how, std::initializer_list<linear_output> outputs);
  /// to = or += dy W + what the adapter gives, of each linear, and the gradients of what is trained.
  void apply_back(const layer_rows& at, const_float_rows x, std::initializer_list<linear_gradient> given,
                  gradient_target to);
  /// out = in + what o or down gives, or its norm. `out` may be null where only what backward reads is wanted.
  void add_output(const layer_rows& at, linear_kind kind, const_float_rows x, const_float_rows in, float_rows out);
  /// The last step of a mixer: from the gradients of what linears made of the layer's normalized rows.
  void read_back(const layer_rows& at, std::initializer_list<linear_gradient> given, gradient_target to);

 private:
  static constexpr std::int64_t rows_per_task = 16;

  void normalize_back(const trained_norm& norm, std::int64_t width, const_float_rows x,
                      std::span<const std::int64_t> rows, const_float_rows dy, float_rows dx);
  std::int64_t norm_stride() const {
    return config().joint_qk_norm ? std::max(strides_.hidden, strides_.q) : strides_.hidden;
  }
  /// The gradients of an adapter's factors, and B^T dy in scratch().dlora.
  void lora_back(const trained_linear& linear, const_float_rows between, const_float_rows x, const_float_rows dy);
  /// dx += what scratch().dlora means for the adapter's input.
  void lora_input_back(const trained_linear& linear, float_rows dx);
  void weights_back(const trained_linear& linear, const_float_rows x, const_float_rows dy);
  const_float_rows dropped(const lora_factors& lora, const_float_rows x, std::int64_t width) const;

  const trained_model& model_;
  compute with_;
  const train_kernel_table& kernels_;
  train_pass::options options_;
  row_strides strides_;
  scratch_rows scratch_;
  products body_;
  aligned_buffer<float> norm_gradients_;   // of each task, added up in order
  std::vector<std::int64_t> row_numbers_;  // 0, 1, 2 …
  std::int64_t count_ = 0;
  dropout_key dropout_;
};

}  // namespace troupe
