#pragma once
#include <cstdint>
#include <vector>

#include "model/formats/linear_layers.hpp"
#include "model/formats/model_config.hpp"
#include "model/formats/row_order.hpp"

namespace troupe {

/// How PEFT's factors of a module lie, whose linear layers begin with `first`.
class factor_order {
 public:
  factor_order(const model_config& config, linear_kind first)
      : outs_(order_in_class(config, first)), ins_(input_order_in_class(config, first)) {}

  /// A is [rank, ins], B [outs, rank], with the outputs of all the module's layers.
  std::vector<float> our_a(std::vector<float> a, std::int64_t rank) const;
  std::vector<float> our_b(std::vector<float> b, std::int64_t rank) const {
    return outs_.in_our_order(std::move(b), rank);
  }
  std::vector<float> peft_a(std::vector<float> a, std::int64_t rank) const;
  std::vector<float> peft_b(std::vector<float> b, std::int64_t rank) const {
    return outs_.in_file_order(std::move(b), rank);
  }

 private:
  row_order outs_, ins_;
};

}  // namespace troupe
