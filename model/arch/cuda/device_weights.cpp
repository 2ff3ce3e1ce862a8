#include "model/arch/cuda/device_weights.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/to_size.hpp"
#include "model/arch/gpu.hpp"
#include "model/ops/cuda/ops.hpp"

namespace troupe {

void check_sizes_for_gpu(const model_config& config, const std::string& where) {
  if (config.head_dim > cuda::most_head_dim)
    refuse("{}: the model's heads have {} values, {} at most run on GPUs: use the device cpu", where, config.head_dim,
           cuda::most_head_dim);
  const std::int64_t widest = std::max({config.hidden, config.heads * config.head_dim, config.ffn});
  if (widest > cuda::most_row_values)
    refuse("{}: the model's rows have {} values, {} at most run on GPUs: use the device cpu", where, widest,
           cuda::most_row_values);
}

/// Puts weights one after another into memory that is large enough; without memory it only counts.
class device_weights::mover {
 public:
  mover(std::byte* to, const cuda::stream& on) : to_(to), on_(on) {}

  std::size_t bytes() const { return bytes_; }
  matrix_view moved(const matrix_view& w) {
    if (!w.weights) return w;
    const matrix_bytes bytes = packed_bytes(w.kind, w.outs, w.ins);
    return {w.kind,
            w.outs,
            w.ins,
            moved(w.weights, bytes.weights),
            moved(w.scales, bytes.scales),
            moved(w.mids, bytes.mids)};
  }
  const float* moved(const float* values, std::int64_t count) {
    return values ? moved(values, to_size(count)) : nullptr;
  }
  matrix_view moved(const matrix_view& w, const column_cut& cut) { return w.weights ? moved(outputs_of(w, cut)) : w; }
  linear_weights moved(const linear_weights& linear, const column_cut& cut) {
    const matrix_view w = moved(linear.w, cut);
    return {w, linear.bias ? moved(linear.bias + cut.first_output(), padded_outs(w.outs)) : nullptr};
  }
  norm_weights moved(const norm_weights& norm, std::int64_t size) {
    return {moved(norm.weight, padded_row(size)), moved(norm.bias, padded_row(size))};
  }
  /// One matrix of each expert: all weights side by side, then all scales, then all mids.
  void move(const std::vector<expert_weights>& from, matrix_view expert_weights::*which,
            std::vector<expert_weights>& to) {
    const matrix_view& first = from.front().*which;
    const matrix_bytes bytes = part_bytes(first.kind, first.outs, first.ins);
    for (std::size_t i = 0; i < from.size(); ++i) to[i].*which = from[i].*which;
    const auto move_part = [&](const std::byte* matrix_view::*part, std::size_t size) {
      for (std::size_t i = 0; i < from.size(); ++i) (to[i].*which).*part = put((from[i].*which).*part, size);
      align();
    };
    move_part(&matrix_view::weights, bytes.weights);
    move_part(&matrix_view::scales, bytes.scales);
    move_part(&matrix_view::mids, bytes.mids);
  }

 private:
  template <class T>
  const T* moved(const T* from, std::size_t count) {
    const auto* to = put(reinterpret_cast<const std::byte*>(from), count * sizeof(T));
    align();
    return reinterpret_cast<const T*>(to);
  }
  const std::byte* put(const std::byte* from, std::size_t count) {
    const std::size_t at = bytes_;
    bytes_ += count;
    if (!to_) return from;
    cuda::copy(to_ + at, from, count, on_);
    return to_ + at;
  }
  void align() { bytes_ = rounded_up(bytes_, 256); }

  std::byte* to_;
  const cuda::stream& on_;
  std::size_t bytes_ = 0;
};

device_weights::device_weights(const loaded_model& model, std::int64_t first_layer, std::int64_t count,
                               const cuda::stream& on, const tensor_split& split) {
  const output_cuts cuts(split, model.config);
  mover counting(nullptr, on);
  move_from(model, first_layer, count, cuts, counting);
  memory_ = cuda::device_buffer<std::byte>(counting.bytes());
  mover moving(memory_.data(), on);
  move_from(model, first_layer, count, cuts, moving);
  on.wait();
}

void device_weights::move_from(const loaded_model& model, std::int64_t first_layer, std::int64_t count,
                               const output_cuts& cuts, mover& by) {
  const model_config& config = model.config;
  layers.clear();
  for (std::int64_t layer = first_layer; layer < first_layer + count; ++layer) {
    const layer_weights& from = model.layers[to_size(layer)];
    layer_weights& to = layers.emplace_back();
    to.attention_norm = by.moved(from.attention_norm, config.hidden);
    to.mlp_norm = by.moved(from.mlp_norm, config.hidden);
    to.attention_output_norm = by.moved(from.attention_output_norm, config.hidden);
    to.mlp_output_norm = by.moved(from.mlp_output_norm, config.hidden);
    to.q_norm = by.moved(from.q_norm, config.q_norm_size(layer));
    to.k_norm = by.moved(from.k_norm, config.k_norm_size(layer));
    for (const linear_kind kind : every_linear) to[kind] = by.moved(from[kind], cuts.of(kind));
    if (from.experts.empty()) continue;
    to.router = by.moved(from.router);
    to.experts.resize(from.experts.size());
    for (const auto which : {&expert_weights::gate, &expert_weights::up, &expert_weights::down})
      by.move(from.experts, which, to.experts);
  }
  const bool is_first = first_layer == 0, is_last = first_layer + count == config.layers;
  if (is_first) {
    embeddings = by.moved(model.embeddings);
    positions = by.moved(model.positions, config.context * padded_row(config.hidden));
  }
  if (is_last) {
    final_norm = by.moved(model.final_norm, config.hidden);
    const bool tied = is_first && model.head.weights == model.embeddings.weights;
    head = tied ? outputs_of(embeddings, cuts.vocab) : by.moved(model.head, cuts.vocab);
  }
}

}  // namespace troupe
