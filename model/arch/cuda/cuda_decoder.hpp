#pragma once
#include <initializer_list>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "model/arch/cuda/device_adapters.hpp"
#include "model/arch/cuda/device_angles.hpp"
#include "model/arch/cuda/device_experts.hpp"
#include "model/arch/cuda/device_gather.hpp"
#include "model/arch/cuda/device_weights.hpp"
#include "model/arch/cuda/pass_tables.hpp"
#include "model/arch/decoder.hpp"
#include "model/ops/cuda/library_products.hpp"

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
  /// One linear layer of some that share their input, and where its outputs go.
  struct linear_product {
    linear_kind kind;
    const linear_weights& weights;
    float_rows to;
    bool accumulate = false;
  };

  bool is_first() const { return options_.first_layer == 0; }
  bool is_last() const { return options_.first_layer + options_.layers == model_->config.layers; }
  void use() const { cuda::use_device(options_.device.gpu); }
  float_rows made_part(const linear_product& product) const;
  std::int64_t most_gathered_floats() const;
  cuda::row_codes codes_for(std::span<const linear_product> products) const;
  bool read_floats(const pass_shape& shape, std::span<const linear_product> products) const;
  cuda::kv_layer cache_of(std::int64_t layer) const;
  void take_library();

  void run_decode(const pass_shape& shape);
  void run_pass(const pass_shape& shape);
  void attend(const pass_shape& shape, std::int64_t layer);
  void feed_forward(const pass_shape& shape, std::int64_t layer);
  void mix_experts(const pass_shape& shape, std::int64_t layer);
  bool multiply_gated(const pass_shape& shape, std::span<const linear_product> inner, bool floats,
                      cuda::row_codes& codes);
  void activate(const pass_shape& shape, const cuda::row_codes& codes, bool floats);
  void place_heads(const pass_shape& shape, std::int64_t layer);
  void attend_heads(const pass_shape& shape, std::int64_t layer);
  /// normed = the norm of rows of hidden, of those that `gather` names where it is not null; without `floats` there are
  /// only codes of it.
  void normalize(int rows, const norm_weights& norm, const std::int32_t* gather, const cuda::row_codes& codes,
                 bool floats);
  /// What attention and mlp read. Without norms before them that is hidden itself, of which normalize makes codes.
  float_rows read_rows() const {
    return rows_of(model_->config.input_norms ? normed_ : hidden_, model_->config.hidden);
  }
  void normalize_heads(const pass_shape& shape, const norm_weights& norm, float_rows heads, const column_cut& cut);
  /// What a layer adds to hidden: made there, or aside where it is normalized first.
  linear_product output_product(linear_kind kind, const linear_weights& weights) const;
  void finish_output(const pass_shape& shape, const norm_weights& norm);
  void multiply(const pass_shape& shape, std::int64_t layer, float_rows x, std::int64_t ins,
                std::span<const linear_product> products);
  void multiply(const pass_shape& shape, std::int64_t layer, float_rows x, std::int64_t ins,
                std::span<const linear_product> products, const cuda::row_codes& codes);
  void add_adapters(const pass_shape& shape, std::int64_t layer, float_rows x, std::int64_t ins,
                    std::span<const linear_product> products);

  // cuda_decoder_outputs.cpp
  float* lend(std::size_t rows, std::int64_t stride);
  /// The last norm of the rows of these lists, a part of them at a time: `take` gets the number of the first, and how
  /// many. Waits for all that was put on the stream.
  template <class Take>
  void finish(std::initializer_list<std::span<const int>> lists, const cuda::row_codes& codes, Take take);

  cuda::stream stream_;
  output_cuts cuts_;
  device_weights weights_;
  device_adapters adapters_;
  pass_tables tables_;
  device_angles angles_;
  std::int64_t heads_width_, kv_width_;  ///< columns of all heads' queries, and keys
  int picked_rows_;                      ///< at a time, whose logits are made
  device_gather gather_;
  cuda::device_buffer<float> hidden_, normed_, q_, k_, v_, mixed_, gate_, up_, between_, scratch_, logits_;
  cuda::device_buffer<std::byte> kv_;  ///< [layers, blocks, heads that are this rank's]
  cuda::coded_rows codes_;
  device_experts experts_;                           ///< of a mixture
  std::unique_ptr<cuda::library_products> library_;  ///< null: our own kernels serve alone
  std::string remark_;
  cuda::pinned_buffer<std::int32_t> picked_, largest_;
  cuda::device_buffer<std::int32_t> picked_on_device_, largest_on_device_;
  cuda::pinned_buffer<float> lent_;
  std::vector<std::int32_t> tokens_;
  std::map<pass_shape, cuda::graph> recorded_;  ///< empty: a shape that came once
};

}  // namespace troupe
