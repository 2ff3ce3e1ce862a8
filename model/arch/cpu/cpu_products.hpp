#pragma once
#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <vector>

#include "model/arch/cpu/layer_pass.hpp"
#include "model/arch/tensor_split.hpp"
#include "model/ops/matmul.hpp"
#include "model/ops/row_memory.hpp"

namespace troupe {

/// One linear layer of some that share their input, and where its outputs go.
struct linear_product {
  std::optional<linear_kind> kind;  ///< none: no adapter changes it
  const linear_weights& weights;
  float_rows to;
  const column_cut& columns;  ///< that this rank makes
  bool accumulate = false;
};

/// What all parts of a layer do with a pass's rows: they normalize them, and multiply them by weights and by the rows'
/// adapters.
class cpu_products {
 public:
  cpu_products(const loaded_model& model, const decoder::options& chosen, const compute& with);

  /// Before the layers of a pass.
  void begin(const pass& batch);

  const loaded_model& model() const { return model_; }
  const model_config& config() const { return model_.config; }
  thread_pool& pool() const { return with_.pool; }
  const kernel_table& kernels() const { return with_.kernels; }
  const compute& with() const { return with_; }
  const tensor_split& split() const { return gather_.split(); }
  const output_cuts& cuts() const { return cuts_; }  ///< of what all layers have
  float_rows normed() const { return normed_; }
  std::int64_t hidden_stride() const { return padded_row(config().hidden); }
  /// For parts that bring rows into a form of their own.
  quantized_rows& quantized() { return quantized_; }

  /// make_row(row) makes an input, of which the products then make their outputs.
  template <class MakeRow>
  void multiply(const layer_pass& at, float_rows x, std::span<const linear_product> products, MakeRow make_row);
  /// The same where each rank makes some columns of the inputs.
  template <class MakeRow>
  void multiply_gathered(const layer_pass& at, float_rows x, const column_cut& cut,
                         std::span<const linear_product> products, MakeRow make_row);
  /// The inputs are what the layer reads, normalized, and stay in normed().
  void multiply_normed(const layer_pass& at, const norm_weights& norm, std::span<const linear_product> products);
  /// By weights that are no layer's.
  template <class MakeRow>
  void multiply_alone(int rows, float_rows x, const linear_product& product, MakeRow make_row);

  /// Without weights there is no norm: the row is copied.
  void normalize(const norm_weights& norm, const float* from, float* to) const;
  /// What a layer adds to its rows: made there, or aside where it is normalized first.
  linear_product output_product(linear_kind kind, const linear_weights& weights, float_rows hidden) const;
  /// Once it is made.
  void finish_output(const layer_pass& at, const norm_weights& norm);
  /// Puts together what the ranks have made of these rows.
  void gather(float_rows rows, int count, const column_cut& cut, int root = tensor_split::everyone);

 private:
  static constexpr std::size_t most_together = 4;

  /// Neighbouring rows with one adapter.
  struct adapter_run {
    const lora_adapter* adapter;
    int first_row, rows;
  };

  /// Makes the inputs, as floats in `x` and, where a weight asks for it, as integers.
  template <class MakeRow>
  void prepare(int rows, float_rows x, std::span<const linear_product> products, MakeRow make_row);
  void multiply_prepared(const layer_pass& at, float_rows x, std::span<const linear_product> products);
  matmul_args job_of(int rows, float_rows x, const linear_product& product) const;
  void find_adapters(std::int64_t layer, std::span<const matmul_args> jobs, std::span<const linear_product> products);

  const loaded_model& model_;
  compute with_;
  column_gather gather_;
  output_cuts cuts_;
  quantized_rows quantized_;
  int max_rows_;
  row_memory normed_, between_;            ///< between_: what factors A make
  std::vector<adapter_run> adapter_runs_;  ///< of the pass
  std::vector<adapted_job> adapters_;      ///< of the products being made
};

template <class MakeRow>
void cpu_products::prepare(int rows, float_rows x, std::span<const linear_product> products, MakeRow make_row) {
  const bool integers =
      std::ranges::any_of(products, [](const linear_product& p) { return is_integer(p.weights.w.kind); });
  if (integers) quantized_.begin(rows, products.front().weights.w.ins);
  // rows of a tile lie in the same cache lines
  pool().run_each(rows, integers ? quantized_.view().tile.rows : 8, [&](int row) {
    make_row(row);
    if (integers) quantized_.put(row, x.row(row));
  });
}

template <class MakeRow>
void cpu_products::multiply(const layer_pass& at, float_rows x, std::span<const linear_product> products,
                            MakeRow make_row) {
  prepare(at.batch.rows, x, products, make_row);
  multiply_prepared(at, x, products);
}

template <class MakeRow>
void cpu_products::multiply_gathered(const layer_pass& at, float_rows x, const column_cut& cut,
                                     std::span<const linear_product> products, MakeRow make_row) {
  if (split().is_whole()) return multiply(at, x, products, make_row);
  pool().run_each(at.batch.rows, 8, [&](int row) { make_row(row); });
  gather(x, at.batch.rows, cut);
  multiply(at, x, products, [](int) {});
}

template <class MakeRow>
void cpu_products::multiply_alone(int rows, float_rows x, const linear_product& product, MakeRow make_row) {
  prepare(rows, x, {&product, 1}, make_row);
  matmul(with_, std::array{job_of(rows, x, product)});
}

}  // namespace troupe
