#pragma once
#include <optional>

#include "model/arch/cpu/cpu_attention.hpp"
#include "model/arch/cpu/cpu_convolution.hpp"
#include "model/arch/cpu/cpu_delta.hpp"
#include "model/arch/cpu/cpu_mlp.hpp"
#include "model/arch/cpu/cpu_products.hpp"
#include "model/arch/cpu/cpu_tokens.hpp"
#include "model/arch/decoder.hpp"
#include "model/arch/state_storage.hpp"

namespace troupe {

/// A decoder on the processor: the pool of `with` helps the thread that calls it.
class cpu_decoder final : public decoder {
 public:
  cpu_decoder(std::shared_ptr<const loaded_model> model, const options& chosen, const compute& with);

  void add_adapter(const lora_adapter&) override {}  // its kernels read adapters where they are
  void remove_adapter(const lora_adapter&) override {}
  void copy_block(std::int64_t from, std::int64_t to) override { attention_.copy_block(from, to); }
  void copy_state(std::int32_t from, std::int32_t to) override { states_.copy(from, to); }
  void embed(const pass& batch, std::span<const std::int32_t> tokens, float* hidden) override;
  void run(const pass& batch, float* hidden) override;
  const float* logits(const float* hidden, const wanted_logits& wanted) override;
  const float* normalized(const float* hidden, std::span<const int> rows) override;

 private:
  /// What the rows read of each other, as the layer has it.
  void mix(const layer_pass& at);
  void finish_layer(const layer_pass& at);
  void finish_logits(int rows, float_rows logits) const;
  float_rows lend(std::size_t rows, std::int64_t stride);

  cpu_products products_;
  state_storage states_;
  cpu_attention attention_;
  std::optional<cpu_delta> delta_;
  std::optional<cpu_convolution> convolution_;
  cpu_mlp mlp_;
  std::optional<cpu_tokens> tokens_;
  aligned_buffer<float> lent_;
};

}  // namespace troupe
