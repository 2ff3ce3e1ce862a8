#pragma once
#include <cstdint>

#include "model/arch/loaded_model.hpp"

namespace troupe {

/// A number for all that a model computes by: its configuration, its weights and their quantization. Of the packed file
/// it takes the head, the tensors' digests as they were packed, and samples of each tensor: no more is read. The same
/// on every machine. Tells apart what was not meant to be the same; not meant to withstand an attacker. Never 0.
std::uint64_t fingerprint_of(const loaded_model& model);

}  // namespace troupe
