#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/aligned_buffer.hpp"
#include "base/to_size.hpp"
#include "model/arch/tensor_split.hpp"
#include "model/formats/model_config.hpp"
#include "model/ops/kernels.hpp"

namespace troupe {

inline constexpr kv_kind all_kv_kinds[] = {kv_kind::f16, kv_kind::f32, kv_kind::i8};
/// "f16", "f32", "int8".
std::string_view name_of(kv_kind kind);
/// Throws input_error for an unknown name; `where` names the flag or the place in a file.
kv_kind kv_from_name(std::string_view name, std::string_view where);

/// The keys and values of some layers for a fixed number of blocks. It knows no sequences: whoever owns the block
/// tables decides what lies where. All memory is taken at once.
class kv_storage {
 public:
  /// One layer's keys and values, block after block.
  struct layer_blocks {
    std::byte* first = nullptr;
    std::int64_t block_bytes = 0;
    std::int64_t head_bytes = 0;  ///< one kv head's part of a block
  };

  /// Of `layers` from `first_layer` on, those that keep any. Of the heads of each it has all, or one rank's share.
  kv_storage(const model_config& config, const tensor_split& split, std::int64_t first_layer, std::int64_t layers,
             std::int64_t blocks, kv_kind kind);

  /// What this layer of the model reads, and keeps unless it shares them. It attends.
  const layer_blocks& layer(std::int64_t layer) const { return layers_[to_size(layer - first_layer_)]; }
  /// In all layers.
  void copy_block(std::int64_t from, std::int64_t to) const;
  kv_kind kind() const { return kind_; }

  /// Of one block, with all heads, in this layer.
  static std::int64_t bytes_per_block(const model_config& config, std::int64_t layer, kv_kind kind);
  /// In all layers.
  static std::int64_t bytes_per_block(const model_config& config, kv_kind kind);

 private:
  kv_kind kind_;
  std::int64_t first_layer_;
  std::vector<layer_blocks> layers_;
  std::vector<layer_blocks> kept_;  ///< those that keep any
  aligned_buffer<std::byte> memory_;
};

}  // namespace troupe
