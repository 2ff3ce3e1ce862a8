#include "model/arch/kv_storage.hpp"

#include <cstring>

#include "base/error.hpp"
#include "base/to_size.hpp"

namespace troupe {

std::string_view name_of(kv_kind kind) {
  return kind == kv_kind::f32 ? "f32" : kind == kv_kind::f16 ? "f16" : "int8";
}

kv_kind kv_from_name(std::string_view name, std::string_view where) {
  for (const kv_kind kind : all_kv_kinds)
    if (name_of(kind) == name) return kind;
  refuse("{}: unknown kind '{}': use f16, f32 or int8", where, name);
}

kv_storage::kv_storage(const model_config& config, const tensor_split& split, std::int64_t first_layer,
                       std::int64_t layers, std::int64_t blocks, kv_kind kind)
    : kind_(kind), first_layer_(first_layer), layers_(to_size(layers)) {
  const std::int64_t end = first_layer + layers;
  std::int64_t bytes = 0;
  for (std::int64_t i = first_layer; i < end; ++i) {
    if (!config.keeps_keys(i)) continue;
    layer_blocks& own = layers_[to_size(i - first_layer)];
    own.head_bytes = kv_head_bytes(kind, config.head_dim_of(i));
    own.block_bytes = own.head_bytes * cut_columns(split, config.kv_heads_of(i), 1).count();
    bytes += own.block_bytes * blocks;
  }
  memory_ = aligned_buffer<std::byte>(to_size(bytes));
  std::byte* next = memory_.data();
  for (layer_blocks& own : layers_) {
    if (own.block_bytes == 0) continue;
    own.first = next;
    next += own.block_bytes * blocks;
    kept_.push_back(own);
  }
  for (std::int64_t i = first_layer; i < end; ++i)
    if (config.shares_keys(i)) layers_[to_size(i - first_layer)] = layer(config.keys_of(i));
}

void kv_storage::copy_block(std::int64_t from, std::int64_t to) const {
  for (const layer_blocks& of : kept_)
    std::memcpy(of.first + to * of.block_bytes, of.first + from * of.block_bytes, to_size(of.block_bytes));
}

std::int64_t kv_storage::bytes_per_block(const model_config& config, std::int64_t layer, kv_kind kind) {
  return config.keeps_keys(layer) ? kv_head_bytes(kind, config.head_dim_of(layer)) * config.kv_heads_of(layer) : 0;
}

std::int64_t kv_storage::bytes_per_block(const model_config& config, kv_kind kind) {
  std::int64_t bytes = 0;
  for (std::int64_t layer = 0; layer < config.layers; ++layer) bytes += bytes_per_block(config, layer, kind);
  return bytes;
}

}  // namespace troupe
