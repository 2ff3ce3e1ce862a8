#pragma once
#include <memory>
#include <span>
#include <string>

#include "model/arch/cuda/cuda_layer_pass.hpp"
#include "model/arch/cuda/device_adapters.hpp"
#include "model/arch/cuda/device_gather.hpp"
#include "model/arch/decoder.hpp"
#include "model/ops/cuda/library_products.hpp"

namespace troupe {

/// From this column on.
inline float_rows columns_of(float_rows rows, std::int64_t first) {
  return {rows.data ? rows.data + first : nullptr, rows.stride};
}

/// What all parts of a layer do with a pass's rows on a device: they normalize them, and multiply them by weights and
/// by the rows' adapters. All of it is put on one stream, in order.
class cuda_products {
 public:
  /// One linear layer of some that share their input, and where its outputs go.
  struct linear_product {
    linear_kind kind;
    const linear_weights& weights;
    float_rows to;
    bool accumulate = false;
  };
  /// What other parts ask of the memory that all share.
  struct room {
    std::int64_t scratch_floats = 0;
    int picked_rows = 0;  ///< whose logits are made at a time
  };

  cuda_products(const model_config& config, const decoder::options& chosen, const cuda::stream& stream,
                const room& asked);
  /// For passes of very many rows, if there can be any with weights that it multiplies. On Hopper our own kernels do
  /// that. What a user should know of it is returned.
  std::string take_library(std::span<const layer_weights> layers);

  const model_config& config() const { return config_; }
  const cuda::stream& stream() const { return stream_; }
  const output_cuts& cuts() const { return cuts_; }
  bool is_whole() const { return options_.split.is_whole(); }
  device_adapters& adapters() { return adapters_; }
  const cuda::coded_rows& codes() const { return codes_; }
  float_rows hidden() const { return rows_of(hidden_, config_.hidden); }
  float_rows normed() const { return rows_of(normed_, config_.hidden); }
  /// What attention and mlp read. Without norms before them that is hidden itself, of which normalize makes codes.
  float_rows read_rows() const { return config_.input_norms ? normed() : hidden(); }
  std::span<float> scratch() const { return {scratch_.data(), scratch_.size()}; }
  /// As many rows as a pass has at most, with so many columns.
  cuda::device_buffer<float> take_rows(std::int64_t columns) const;

  /// What these products read of their input besides floats.
  cuda::row_codes codes_for(std::span<const linear_product> products) const;
  /// Whether they, or adapters, read more of it than codes.
  bool read_floats(const cuda_layer_pass& at, std::span<const linear_product> products) const;
  /// normed() = the norm of rows of hidden(), of those that `gather` names where it is not null; without `floats` there
  /// are only codes of it.
  void normalize(int rows, const norm_weights& norm, const std::int32_t* gather, const cuda::row_codes& codes,
                 bool floats) const;
  /// Of a layer's rows, for these products.
  void normalize_for(const cuda_layer_pass& at, const norm_weights& norm,
                     std::span<const linear_product> products) const;
  void multiply(const cuda_layer_pass& at, float_rows x, std::int64_t ins, std::span<const linear_product> products,
                const cuda::row_codes& codes);
  void multiply(const cuda_layer_pass& at, float_rows x, std::int64_t ins, std::span<const linear_product> products);
  /// What a layer adds to hidden(): made there, or aside where it is normalized first.
  linear_product output_product(linear_kind kind, const linear_weights& weights) const;
  /// Once it is made.
  void finish_output(const cuda_layer_pass& at, const norm_weights& norm);
  /// Puts together what the ranks have made of these rows.
  void gather(float_rows rows, int count, const column_cut& cut, int root = tensor_split::everyone);

 private:
  std::int64_t most_gathered_floats(const room& asked) const;
  float_rows made_part(const linear_product& product) const;
  void add_adapters(const cuda_layer_pass& at, float_rows x, std::int64_t ins,
                    std::span<const linear_product> products);

  const model_config& config_;
  const decoder::options& options_;
  const cuda::stream& stream_;
  output_cuts cuts_;
  device_adapters adapters_;
  device_gather gather_;
  cuda::coded_rows codes_;
  cuda::device_buffer<float> hidden_, normed_, between_, scratch_;
  std::unique_ptr<cuda::library_products> library_;  ///< null: our own kernels serve alone
};

}  // namespace troupe
