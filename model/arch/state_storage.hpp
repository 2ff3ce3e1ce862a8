#pragma once
#include <cstdint>
#include <vector>

#include "base/aligned_buffer.hpp"
#include "base/to_size.hpp"
#include "model/formats/model_config.hpp"

namespace troupe {

/// What sequences keep in the layers that have a state, for a fixed number of sequences. It knows none of them: whoever
/// names a slot decides whose it is. All memory is taken at once; layers without states take none.
class state_storage {
 public:
  state_storage(const model_config& config, std::int64_t first_layer, std::int64_t layers, std::int64_t slots);

  /// Of a layer of the model that keeps a state.
  float* at(std::int64_t layer, std::int64_t slot) const {
    const auto place = to_size(layer - first_layer_);
    return memory_.data() + places_[place] + slot * floats_[place];
  }

  /// In all layers.
  void copy(std::int64_t from, std::int64_t to);

 private:
  std::int64_t first_layer_;
  std::vector<std::int64_t> floats_, places_;  ///< by layer: of one slot, and where the first one is
  aligned_buffer<float> memory_;
};

}  // namespace troupe
