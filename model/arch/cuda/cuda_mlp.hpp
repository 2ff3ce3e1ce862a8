#pragma once
#include <optional>

#include "model/arch/cuda/cuda_products.hpp"
#include "model/arch/cuda/device_experts.hpp"

namespace troupe {

/// The second half of a layer on a device: an mlp, or a mixture of experts.
class cuda_mlp {
 public:
  /// `layers` as device_weights has them.
  cuda_mlp(cuda_products& products, const decoder::options& chosen, const std::vector<layer_weights>& layers);
  void run(const cuda_layer_pass& at);

 private:
  using linear_product = cuda_products::linear_product;

  void feed_forward(const cuda_layer_pass& at);
  void mix_experts(const cuda_layer_pass& at);
  /// Gate, up and activation at once, if that is possible.
  bool multiply_gated(const cuda_layer_pass& at, std::span<const linear_product> inner, bool floats,
                      cuda::row_codes& codes);
  void activate(const cuda_layer_pass& at, const cuda::row_codes& codes, bool floats);

  cuda_products& products_;
  const model_config& config_;
  std::optional<device_experts> experts_;
  cuda::device_buffer<float> gate_, up_;  ///< where there are no experts; gate_: of gated models
};

}  // namespace troupe
