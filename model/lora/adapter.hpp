#pragma once
#include <array>
#include <cstdint>
#include <vector>

#include "base/aligned_buffer.hpp"
#include "model/lora/adapter_file.hpp"
#include "model/ops/matrix.hpp"

namespace troupe {

/// One adapted linear layer in the kernels' form: y += scale * B (A x).
struct lora_weights {
  matrix_view a;  // [rank, in], f32
  matrix_view b;  // [out, rank], f32
  float scale = 0;
};

/// The linear layers of a transformer layer.
enum class linear_kind : std::uint8_t { q, k, v, o, gate, up, down };
constexpr std::size_t linear_kinds = 7;

/// Of an adapter: the working memory of a pass is laid out for it.
constexpr std::int64_t most_adapter_rank = 512;

/// An adapter ready to run. Owns its packed weights; immutable.
class lora_adapter {
 public:
  lora_adapter(const adapter_file& file, std::int64_t layers);

  /// nullptr where the adapter leaves the linear layer as it is.
  const lora_weights* find(std::int64_t layer, linear_kind kind) const {
    const lora_weights& part = layers_[static_cast<std::size_t>(layer)][static_cast<std::size_t>(kind)];
    return part.scale == 0 ? nullptr : &part;
  }
  std::int64_t max_rank() const { return max_rank_; }
  std::size_t bytes() const { return memory_.size(); }

 private:
  aligned_buffer<std::byte> memory_;
  std::vector<std::array<lora_weights, linear_kinds>> layers_;
  std::int64_t max_rank_ = 0;
};

}  // namespace troupe
