#include "model/arch/cuda/device_weights.hpp"

namespace troupe {

/// Puts weights one after another into memory that is large enough; without memory it only counts.
class device_weights::mover {
 public:
  mover(std::byte* to, const cuda::stream& on) : to_(to), on_(on) {}

  std::size_t bytes() const { return bytes_; }
  matrix_view moved(const matrix_view& w) {
    if (!w.weights) return w;
    return view_of(w.kind, w.outs, w.ins, moved(w.weights, packed_bytes(w.kind, w.outs, w.ins).total()));
  }
  const float* moved(const float* values, std::int64_t count) {
    return values ? moved(values, static_cast<std::size_t>(count)) : nullptr;
  }
  linear_weights moved(const linear_weights& linear) {
    return {moved(linear.w), moved(linear.bias, padded_outs(linear.w.outs))};
  }
  norm_weights moved(const norm_weights& norm, std::int64_t size) {
    return {moved(norm.weight, padded_row(size)), moved(norm.bias, padded_row(size))};
  }

 private:
  template <class T>
  const T* moved(const T* from, std::size_t count) {
    constexpr std::int64_t alignment = 256;
    const std::size_t at = bytes_;
    bytes_ += static_cast<std::size_t>(rounded_up(static_cast<std::int64_t>(count * sizeof(T)), alignment));
    if (!to_) return from;
    cuda::copy(to_ + at, reinterpret_cast<const std::byte*>(from), count * sizeof(T), on_);
    return reinterpret_cast<const T*>(to_ + at);
  }

  std::byte* to_;
  const cuda::stream& on_;
  std::size_t bytes_ = 0;
};

device_weights::device_weights(const loaded_model& model, std::int64_t first_layer, std::int64_t count,
                               const cuda::stream& on) {
  mover counting(nullptr, on);
  move_from(model, first_layer, count, counting);
  memory_ = cuda::device_buffer<std::byte>(counting.bytes());
  mover moving(memory_.data(), on);
  move_from(model, first_layer, count, moving);
  on.wait();
}

void device_weights::move_from(const loaded_model& model, std::int64_t first_layer, std::int64_t count, mover& by) {
  const model_config& config = model.config;
  layers.clear();
  for (std::int64_t layer = first_layer; layer < first_layer + count; ++layer) {
    const layer_weights& from = model.layers[static_cast<std::size_t>(layer)];
    layer_weights& to = layers.emplace_back();
    to.attention_norm = by.moved(from.attention_norm, config.hidden);
    to.mlp_norm = by.moved(from.mlp_norm, config.hidden);
    to.q_norm = by.moved(from.q_norm, config.head_dim);
    to.k_norm = by.moved(from.k_norm, config.head_dim);
    for (const linear_kind kind : every_linear) to[kind] = by.moved(from[kind]);
  }
  const bool is_first = first_layer == 0, is_last = first_layer + count == config.layers;
  if (is_first) {
    embeddings = by.moved(model.embeddings);
    positions = by.moved(model.positions, config.context * padded_row(config.hidden));
  }
  if (is_last) {
    final_norm = by.moved(model.final_norm, config.hidden);
    const bool tied = is_first && model.head.weights == model.embeddings.weights;
    head = tied ? embeddings : by.moved(model.head);
  }
}

}  // namespace troupe
