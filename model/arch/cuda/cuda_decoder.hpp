#pragma once
#include <initializer_list>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "model/arch/cuda/cuda_attention.hpp"
#include "model/arch/cuda/cuda_mlp.hpp"
#include "model/arch/cuda/cuda_products.hpp"
#include "model/arch/cuda/device_weights.hpp"
#include "model/arch/cuda/pass_tables.hpp"
#include "model/arch/decoder.hpp"

namespace troupe {

/// A decoder on a GPU. All memory is taken when it is made, adapters' when they are added. A pass is put on one stream,
/// in order; the host waits only where rows or logits change hands. Passes of one token a sequence are recorded when
/// their shape comes for the second time, and started as a whole from then on. With a split the host also waits at
/// every gather, and nothing is recorded.
class cuda_decoder final : public decoder {
 public:
  cuda_decoder(std::shared_ptr<const loaded_model> model, const options& chosen);
  ~cuda_decoder() override;

  void add_adapter(const lora_adapter& adapter) override;
  void remove_adapter(const lora_adapter& adapter) override;
  void copy_block(std::int64_t from, std::int64_t to) override;
  /// The tokens wait for run, where they go to the device with all else.
  void embed(const pass& batch, std::span<const std::int32_t> tokens, float* hidden) override;
  void run(const pass& batch, float* hidden) override;
  const float* logits(const float* hidden, const wanted_logits& wanted) override;
  const float* normalized(const float* hidden, std::span<const int> rows) override;
  /// Of a split decoder rank 0 gets all logits, and they are in the host's memory then.
  bool finds_largest() const override { return options_.split.is_whole(); }
  std::string remark() const override { return remark_; }

 private:
  bool is_first() const { return options_.first_layer == 0; }
  bool is_last() const { return options_.first_layer + options_.layers == model_->config.layers; }
  void use() const { cuda::use_device(options_.device.gpu); }
  cuda_products::room room_asked() const;
  void run_decode(const pass_shape& shape);
  void run_pass(const pass_shape& shape);
  void embed_rows(const pass_shape& shape);

  // cuda_decoder_outputs.cpp
  float* lend(std::size_t rows, std::int64_t stride);
  /// The last norm of the rows of these lists, a part of them at a time: `take` gets the number of the first, and how
  /// many. Waits for all that was put on the stream.
  template <class Take>
  void finish(std::initializer_list<std::span<const int>> lists, const cuda::row_codes& codes, Take take);

  cuda::stream stream_;
  device_weights weights_;
  pass_tables tables_;
  int picked_rows_;  ///< at a time, whose logits are made
  cuda_products products_;
  cuda_attention attention_;
  cuda_mlp mlp_;
  std::string remark_;
  cuda::device_buffer<float> logits_;
  cuda::pinned_buffer<std::int32_t> picked_, largest_;
  cuda::device_buffer<std::int32_t> picked_on_device_, largest_on_device_;
  cuda::pinned_buffer<float> lent_;
  std::vector<std::int32_t> tokens_;
  std::map<pass_shape, cuda::graph> recorded_;  ///< empty: a shape that came once
};

}  // namespace troupe
