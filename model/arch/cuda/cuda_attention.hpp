#pragma once
#include "model/arch/cuda/cuda_products.hpp"
#include "model/arch/cuda/device_angles.hpp"

namespace troupe {

/// The first half of a layer on a device: every row looks back at the keys and values of its sequence.
class cuda_attention {
 public:
  cuda_attention(cuda_products& products, const decoder::options& chosen);
  void run(const cuda_layer_pass& at);
  void copy_block(std::int64_t from, std::int64_t to) const;

  /// Of working memory that it shares with others (cuda_products::scratch).
  static std::int64_t scratch_floats(const model_config& config, const decoder::options& chosen);

 private:
  void place_heads(const cuda_layer_pass& at);
  void attend(const cuda_layer_pass& at);
  void normalize_heads(const cuda_layer_pass& at, const norm_weights& norm, float_rows heads, const column_cut& cut);
  float_rows queries() const { return rows_of(q_, heads_width_); }
  float_rows keys() const { return rows_of(k_, kv_width_); }
  float_rows values() const { return rows_of(v_, kv_width_); }
  float_rows mixed() const { return rows_of(mixed_, heads_width_); }
  cuda::kv_layer cache_of(std::int64_t own) const;
  int group(const cuda_layer_pass& at) const { return static_cast<int>(config_.heads_per_kv(at.layer)); }

  cuda_products& products_;
  const model_config& config_;
  const decoder::options& options_;
  device_angles angles_;
  std::int64_t heads_width_, kv_width_;  ///< columns of all heads' queries, and keys
  cuda::device_buffer<float> q_, k_, v_, mixed_;
  cuda::device_buffer<std::byte> kv_;  ///< [layers, blocks, heads that are this rank's]
};

}  // namespace troupe
