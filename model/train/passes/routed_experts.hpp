#pragma once
#include <cstdint>
#include <functional>

#include "model/arch/expert_routes.hpp"
#include "model/ops/row_memory.hpp"
#include "model/train/parameters/trained_model.hpp"

namespace troupe {

/// The mixture of experts of a layer, forward and backward: y = the sum of share_e(x) expert_e(x) over the experts that
/// the router chooses for x. All of it is frozen: gradients go through experts and shares to x; the choice has none.
/// Nothing is kept from forward to backward, which chooses again, from the same scores, and makes each expert's inner
/// rows again: kept, those of all that a row visits would be most of what a pass holds.
class routed_experts {
 public:
  /// `with`, `body` and `between` (train_pass::options) outlive it.
  routed_experts(const model_config& config, std::int64_t most_rows, const compute& with, products& body,
                 const std::function<void()>& between);

  /// What experts read, and what their router reads: mostly the same rows. Padded with zeros.
  template <class Rows>
  struct read_rows {
    Rows x, routed;
    bool is_one() const { return x.data == routed.data; }
    read_rows from(std::int64_t row) const { return {x.from(row), routed.from(row)}; }
  };

  /// y += what the mixture makes of the rows.
  void forward(const trained_layer& layer, const read_rows<const_float_rows>& in, std::int64_t rows, float_rows y);
  /// `gradient` = what dy means for the rows; that of what the router reads may lie in its place.
  void backward(const trained_layer& layer, const read_rows<const_float_rows>& in, std::int64_t rows,
                const_float_rows dy, const read_rows<float_rows>& gradient);

  /// Of its working memory.
  static std::int64_t bytes(const model_config& config, std::int64_t most_rows);

 private:
  /// That are run together.
  static std::int64_t rows_at_once(std::int64_t most_rows);
  /// Of a place and of a row.
  struct strides {
    explicit strides(const model_config& config);
    std::int64_t hidden, ffn, score;
  };

  /// Routes, and gate, up and active of each place.
  void visit(const trained_layer& layer, const read_rows<const_float_rows>& in, std::int64_t rows);
  void gather(const_float_rows from);
  void add_visits(std::int64_t rows, float_rows y);
  void row_back(const trained_layer& layer, int row);
  void shares_back(const trained_layer& layer, int row, float* gradients);
  void sigmoids_back(int row, float* gradients);
  template <class Work>
  void for_groups(Work work);
  template <class Work>
  void for_rows(std::int64_t rows, Work work);

  const model_config& config_;
  const compute& with_;
  const train_kernel_table& kernels_;
  products& body_;
  const std::function<void()>& between_;
  std::int64_t rows_at_once_;
  expert_routes routes_;
  row_memory scores_, score_gradients_;  ///< of each row
  row_memory in_;                        ///< of each place, as the next ones
  row_memory gate_, up_, active_, active_gradient_;
};

}  // namespace troupe
