#pragma once
#include <cstddef>
#include <cstdint>

#include "model/formats/tensor.hpp"

namespace troupe::detail {

/// `count` elements of one of GGUF's block types, whole blocks, as floats.
void blocks_to_floats(dtype type, const std::byte* from, std::int64_t count, float* to);

}  // namespace troupe::detail
