// What names models and adapters to all folders.
#pragma once
#include <cstdint>

#include "base/strong_id.hpp"

namespace troupe {

/// `name@3` of the catalogue, as the number that a replica knows it by. Immutable once published, never used again.
using adapter_version = strong_id<struct adapter_version_tag, std::uint32_t>;
constexpr adapter_version no_adapter{0};  ///< the bare base model

/// What of a model its keys and values depend on: weights and quantization, as a number.
using model_id = strong_id<struct model_tag, std::uint64_t>;

}  // namespace troupe
