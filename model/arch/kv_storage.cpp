#include "model/arch/kv_storage.hpp"

#include <cstring>

namespace troupe {
namespace {

/// Keys [dim][16], then values [16][dim padded to 16].
std::int64_t head_bytes_of(const model_config& config, kv_kind kind) {
  const std::int64_t element = kind == kv_kind::f16 ? 2 : 4;
  return (config.head_dim + rounded_up(config.head_dim, 16)) * positions_per_block * element;
}

}  // namespace

kv_storage::kv_storage(const model_config& config, std::int64_t layers, std::int64_t blocks, kv_kind kind)
    : kind_(kind),
      layers_(layers),
      blocks_(blocks),
      head_bytes_(head_bytes_of(config, kind)),
      block_bytes_(head_bytes_ * config.kv_heads),
      layer_bytes_(block_bytes_ * blocks),
      memory_(static_cast<std::size_t>(layer_bytes_ * layers)) {}

void kv_storage::copy_block(std::int64_t from, std::int64_t to) const {
  for (std::int64_t i = 0; i < layers_; ++i)
    std::memcpy(layer(i) + to * block_bytes_, layer(i) + from * block_bytes_, static_cast<std::size_t>(block_bytes_));
}

std::int64_t kv_storage::bytes_per_block(const model_config& config, std::int64_t layers, kv_kind kind) {
  return head_bytes_of(config, kind) * config.kv_heads * layers;
}

}  // namespace troupe
