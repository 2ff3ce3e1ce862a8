#pragma once
#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/aligned_buffer.hpp"
#include "base/to_size.hpp"
#include "model/formats/linear_layers.hpp"
#include "model/lora/adapter_file.hpp"
#include "model/ops/kernels.hpp"

namespace troupe {

/// One adapted linear layer in the kernels' form: y += B (scales * A x).
struct lora_weights {
  factor_view a;                  // [rank, in]
  factor_view b;                  // [out, rank]
  const float* scales = nullptr;  // [rank, padded to 16]
};

/// How factors are kept. Many adapters in one step are bound by what must be read, so fewer bits pay.
///   exact  in f16 where that loses nothing (files in f16, nearly all in bf16), else in f32
///   half   in f16, rounded to 11 significant bits
///   byte   in i8, each rank with its own scales
enum class adapter_precision : std::uint8_t { exact, half, byte };

/// Beside a base that was quantized (loaded_model::quantization) more bits would only cost: the base itself, which is
/// so much larger, is rounded as much.
adapter_precision precision_beside(std::string_view quantization);

/// Of a number.
std::int64_t most_bytes_of(adapter_precision precision);

/// An adapter ready to run. Owns its packed weights; immutable.
class lora_adapter {
 public:
  lora_adapter(const adapter_file& file, std::int64_t layers, adapter_precision precision = adapter_precision::exact);

  /// nullptr where the adapter leaves the linear layer as it is.
  const lora_weights* find(std::int64_t layer, linear_kind kind) const {
    const lora_weights& part = layers_[to_size(layer)][to_size(kind)];
    return part.scales ? &part : nullptr;
  }
  std::int64_t max_rank() const { return max_rank_; }
  std::size_t bytes() const { return memory_.size(); }
  /// What bytes() would say of it.
  static std::size_t packed_bytes(const adapter_file& file, adapter_precision precision = adapter_precision::exact);

 private:
  aligned_buffer<std::byte> memory_;
  std::vector<std::array<lora_weights, linear_kinds>> layers_;
  std::int64_t max_rank_ = 0;
};

}  // namespace troupe
