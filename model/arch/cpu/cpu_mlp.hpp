#pragma once
#include <optional>

#include "model/arch/cpu/cpu_experts.hpp"
#include "model/arch/cpu/cpu_products.hpp"

namespace troupe {

/// The second half of a layer: an mlp, a mixture of experts, or both.
class cpu_mlp {
 public:
  cpu_mlp(cpu_products& products, const decoder::options& chosen);
  void run(const layer_pass& at);

 private:
  void activate(const layer_pass& at, const column_cut& cut, int row) const;

  cpu_products& products_;
  const model_config& config_;
  std::optional<cpu_experts> experts_;
  row_memory gate_, up_;  ///< gate_: of gated models
};

}  // namespace troupe
