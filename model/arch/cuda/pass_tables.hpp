#pragma once
#include <compare>
#include <span>

#include "model/arch/cuda/device_adapters.hpp"
#include "model/arch/decoder.hpp"

namespace troupe {

/// How much there is of everything in a pass. It decides where every table lies and what kernels are started with, so
/// what is recorded for a shape serves all passes of that shape.
struct pass_shape {
  int rows = 0;
  int sequences = 0;
  int blocks = 0;  ///< of the longest sequence's table
  int attention_tiles = 0;
  int lora_tiles = 0;  ///< 0: no row has an adapter
  int wide_attention_tiles = 0;
  int lora_tile_rows = 0;  ///< at most

  auto operator<=>(const pass_shape&) const = default;
};

/// One token of every sequence: such passes come again and again.
bool is_decode(const pass& batch);

/// What kernels must know of a pass, in one piece of host memory that goes to the device in one copy.
class pass_tables {
 public:
  /// `group`: heads that share one of keys and values.
  pass_tables(int most_rows, int most_sequences, std::int64_t context, int group);

  /// A decode pass is filled up with rows that do nothing, to one of a few shapes. `tokens`: of every row, or empty.
  pass_shape fill(const pass& batch, std::span<const std::int32_t> tokens, const device_adapters& adapters);
  void upload(const pass_shape& shape, const cuda::stream& on);

  // On the device.
  const std::int32_t* tokens() const { return device_.data(); }
  cuda::row_places places(const pass_shape& shape) const;
  const cuda::attention_tile* attention_tiles(const pass_shape& shape) const;
  const cuda::lora_tile* lora_tiles(const pass_shape& shape) const;

 private:
  pass_shape shape_of(const pass& batch) const;

  int most_rows_, most_blocks_, group_;
  cuda::pinned_buffer<std::int32_t> host_;
  cuda::device_buffer<std::int32_t> device_;
  cuda::event uploaded_;
};

}  // namespace troupe
