#pragma once
#include <string>
#include <vector>

#include "model/arch/loaded_model.hpp"
#include "model/arch/tensor_split.hpp"
#include "model/ops/cuda/device.hpp"

namespace troupe {

/// Throws input_error, which names `where`, if the model has sizes that kernels do not know.
void check_sizes_for_gpu(const model_config& config, const std::string& where);

/// The weights of some layers in a device's memory, packed as they are in the host's: the members of loaded_model, with
/// the device's addresses. What only the first or the last layer's holder needs is null for the others. With a split,
/// of each product the outputs that this rank makes; the table of embeddings is whole. The experts' matrices of a kind
/// lie as products of visits want them (model/ops/cuda/experts.hpp).
class device_weights {
 public:
  device_weights(const loaded_model& model, std::int64_t first_layer, std::int64_t count, const cuda::stream& on,
                 const tensor_split& split = {});

  matrix_view embeddings;
  const float* positions = nullptr;
  std::vector<layer_weights> layers;
  norm_weights final_norm;
  matrix_view head;

 private:
  class mover;
  void move_from(const loaded_model& model, std::int64_t first_layer, std::int64_t count, const output_cuts& cuts,
                 mover& by);

  cuda::device_buffer<std::byte> memory_;
};

}  // namespace troupe
