#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/aligned_buffer.hpp"
#include "base/to_size.hpp"
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
  /// Of `layers` from `first_layer` on, those that attend. `heads`: of keys and values, all of the model's or a part of
  /// them.
  kv_storage(const model_config& config, std::int64_t heads, std::int64_t first_layer, std::int64_t layers,
             std::int64_t blocks, kv_kind kind);

  /// `index`: from the first layer on; it attends.
  std::byte* layer(std::int64_t index) const { return memory_.data() + places_[to_size(index)] * layer_bytes_; }
  /// In all layers.
  void copy_block(std::int64_t from, std::int64_t to) const;
  std::int64_t block_bytes() const { return block_bytes_; }  ///< one layer's part of a block
  std::int64_t head_bytes() const { return head_bytes_; }    ///< one kv head's part of that
  kv_kind kind() const { return kind_; }

  /// Of one block, with all heads, in all of `layers` layers that attend.
  static std::int64_t bytes_per_block(const model_config& config, std::int64_t layers, kv_kind kind);

 private:
  kv_kind kind_;
  std::vector<std::int64_t> places_;  ///< by layer: among those that attend
  std::int64_t attending_ = 0;
  std::int64_t head_bytes_;
  std::int64_t block_bytes_;
  std::int64_t layer_bytes_;
  aligned_buffer<std::byte> memory_;
};

}  // namespace troupe
