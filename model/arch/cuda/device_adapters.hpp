#pragma once
#include <unordered_map>

#include "model/arch/tensor_split.hpp"
#include "model/lora/adapter.hpp"
#include "model/ops/cuda/ops.hpp"

namespace troupe {

/// Adapters of some layers in a device's memory, and the table by which kernels find them. Of factors B there are the
/// outputs that this rank makes.
class device_adapters {
 public:
  device_adapters(std::int64_t first_layer, std::int64_t layers, output_cuts cuts)
      : first_layer_(first_layer), layers_(layers), cuts_(std::move(cuts)) {}

  void add(const lora_adapter& adapter, const cuda::stream& on);
  void remove(const lora_adapter& adapter, const cuda::stream& on);
  /// Of an adapter that was added: its row in the table.
  std::int32_t place_of(const lora_adapter& adapter) const { return places_.at(&adapter).row; }

  const cuda::lora_factors* table() const { return table_.data(); }
  /// Of a row: one entry for every linear layer.
  std::int64_t table_stride() const { return layers_ * static_cast<std::int64_t>(linear_kinds); }
  static std::int64_t linear(std::int64_t layer, linear_kind kind) {
    return layer * static_cast<std::int64_t>(linear_kinds) + static_cast<std::int64_t>(kind);
  }
  /// At least that of every adapter. This and the table change rarely: when twice as much is needed.
  int most_rank() const { return most_rank_; }

 private:
  struct place {
    std::int32_t row;
    cuda::device_buffer<std::byte> factors;
  };

  template <class Visit>
  void for_each_pair(const lora_adapter& adapter, Visit visit) const;
  std::int32_t free_row() const;
  void grow_table(const cuda::stream& on);

  std::int64_t first_layer_, layers_;
  output_cuts cuts_;
  std::unordered_map<const lora_adapter*, place> places_;
  cuda::device_buffer<cuda::lora_factors> table_;
  std::int32_t rows_ = 0;
  int most_rank_ = 16;
};

}  // namespace troupe
