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

kv_storage::kv_storage(const model_config& config, std::int64_t heads, std::int64_t first_layer, std::int64_t layers,
                       std::int64_t blocks, kv_kind kind)
    : kind_(kind),
      head_bytes_(kv_head_bytes(kind, config.head_dim)),
      block_bytes_(head_bytes_ * heads),
      layer_bytes_(block_bytes_ * blocks) {
  for (std::int64_t i = 0; i < layers; ++i) {
    places_.push_back(attending_);
    if (config.mixer_of(first_layer + i) == mixer_kind::attention) ++attending_;
  }
  memory_ = aligned_buffer<std::byte>(to_size(layer_bytes_ * attending_));
}

void kv_storage::copy_block(std::int64_t from, std::int64_t to) const {
  for (std::int64_t i = 0; i < attending_; ++i) {
    std::byte* const blocks = memory_.data() + i * layer_bytes_;
    std::memcpy(blocks + to * block_bytes_, blocks + from * block_bytes_, to_size(block_bytes_));
  }
}

std::int64_t kv_storage::bytes_per_block(const model_config& config, std::int64_t layers, kv_kind kind) {
  return kv_head_bytes(kind, config.head_dim) * config.kv_heads * layers;
}

}  // namespace troupe
