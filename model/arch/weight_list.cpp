#include "model/arch/weight_list.hpp"

namespace troupe {

void visit_weights(const model_config& config, const weight_visitor& visitor) {
  for (const detail::wanted_weight& weight : detail::wanted_weights(config)) {
    // Learned positions are added row by row, a convolution's weights are multiplied so: none is a matrix of products.
    const bool is_vector = weight.vector || weight.part == "model.embed_positions" ||
                           weight.part == detail::delta_parts::convolution || weight.part == detail::short_convolution;
    (is_vector ? visitor.vector : visitor.matrix)(weight.name(), weight.outs, weight.ins);
  }
}

}  // namespace troupe
