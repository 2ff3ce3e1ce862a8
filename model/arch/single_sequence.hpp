#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "model/arch/decoder.hpp"

namespace troupe {

/// One sequence and a model, no batch: for the commands that need no cluster, and for tests.
class single_sequence {
 public:
  struct options {
    const lora_adapter* adapter = nullptr;
    int chunk = 512;             ///< tokens of one pass at most
    std::int64_t positions = 0;  ///< room in the cache; 0: the model's context
    kv_kind kv = kv_kind::f16;
    device_id device = {};
    /// Positions that were asked for, however few there is room for: longrope turns heads by it. 0: the model's.
    std::int64_t context = 0;
  };
  single_sequence(std::shared_ptr<const loaded_model> model, const options& chosen, const compute& with);

  /// Appends tokens, at least one; returns the logits [vocab] after the last one, valid until the next call.
  std::span<const float> feed(std::span<const std::int32_t> tokens);
  /// Appends tokens and shows the logits after each of them.
  using row_visitor = std::function<void(std::size_t index, std::span<const float> logits)>;
  void feed(std::span<const std::int32_t> tokens, const row_visitor& visit);

  void restart() { position_ = 0; }
  std::int64_t vocab_size() const { return decoder_->model().config.vocab_size; }
  std::int64_t room() const { return options_.positions - position_; }

 private:
  void pass_over(std::span<const std::int32_t> tokens);
  std::span<const float> logits_of(int first_row, int count);

  options options_;
  std::vector<std::int32_t> blocks_;
  std::unique_ptr<decoder> decoder_;
  std::int64_t position_ = 0;
  aligned_buffer<float> hidden_;
};

}  // namespace troupe
