#pragma once
#include <cstdint>

#include "model/arch/loaded_model.hpp"

namespace troupe {

/// Brings the weights of so many layers in now, so that the first pass does not pay for it; with the first layer also
/// the embeddings, with the last one the head.
void preload(const loaded_model& model, std::int64_t first_layer, std::int64_t layers);

}  // namespace troupe
