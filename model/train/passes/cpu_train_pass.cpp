#include "model/train/passes/cpu_train_pass.hpp"

#include <algorithm>
#include <array>

#include "model/ops/pack.hpp"

namespace troupe {

cpu_train_pass::cpu_train_pass(const trained_model& model, const compute& with, const options& chosen)
    : model_(model), rows_(model, with, chosen), convolution_(rows_), mlp_(rows_), tokens_(rows_), loss_(rows_) {
  const model_config& config = model.config;
  if (config.is_latent())
    latent_.emplace(rows_);
  else
    attention_.emplace(rows_);
  if (config.mixes_by(mixer_kind::delta)) delta_.emplace(rows_);
  for (std::size_t i = 0; i <= model.layers.size(); ++i) inputs_.emplace_back(chosen.most_rows, rows_.strides().hidden);
  const std::span<const trained_layer> layers(model.layers);
  for (std::size_t i = 0; i < (chosen.keep_activations ? layers.size() : 1); ++i)
    activations_.push_back(
        make_activations(i > 0 ? layers.subspan(i, 1) : layers, config, rows_.strides(), chosen.most_rows));
}

pass_result cpu_train_pass::train(const training_rows& batch, float factor, const dropout_key& dropout) {
  begin(batch, dropout);
  forward(batch, true);
  rows_.clear(rows_.scratch().gradient);
  if (attention_) attention_->begin_back();
  const pass_result result = loss_.run(batch, inputs_.back(), factor, true);
  for (std::size_t layer = model_.layers.size(); layer-- > 0;) {
    const layer_rows at = rows_of(batch, layer, true);
    if (!rows_.options().keep_activations) forward_layer(at, {});
    backward_layer(at);
    rows_.give_way();
  }
  embed_back(batch);
  return result;
}

pass_result cpu_train_pass::measure(const training_rows& batch) {
  begin(batch, {});
  forward(batch, false);
  return loss_.run(batch, inputs_.back(), 0.0f, false);
}

void cpu_train_pass::begin(const training_rows& batch, const dropout_key& dropout) {
  check_rows(batch, rows_.options(), model_.config);
  rows_.begin(batch.rows(), dropout);
}

layer_rows cpu_train_pass::rows_of(const training_rows& batch, std::size_t layer, bool keep) {
  return {.batch = batch,
          .layer = static_cast<std::int64_t>(layer),
          .weights = model_.layers[layer],
          .a = activations_[keep && rows_.options().keep_activations ? layer : 0],
          .in = inputs_[layer]};
}

void cpu_train_pass::embed(const training_rows& batch, float_rows hidden) {
  for (const auto& segment : batch.segments)
    rows_.for_some(segment.rows, [&](std::int64_t i, std::int64_t) {
      float* row = hidden.row(segment.first + i);
      const std::int64_t token = batch.tokens[to_size(segment.first + i)];
      std::fill_n(row, hidden.stride, 0.0f);
      if (model_.embeddings.values)
        std::copy_n(model_.embeddings.values + token * model_.embeddings.stride, model_.config.hidden, row);
      else
        unpack_row(model_.embeddings.packed, token, row);
      if (const float factor = model_.config.embedding_factor; factor != 1)
        std::transform(row, row + model_.config.hidden, row, [&](float x) { return x * factor; });
      if (model_.positions)
        rows_.kernels().add(model_.positions + i * model_.position_stride, model_.config.hidden, row);
    });
}

/// Threads share the columns, so each element adds its rows in order.
void cpu_train_pass::embed_back(const training_rows& batch) {
  if (!model_.embeddings.gradient) return;
  constexpr std::int64_t columns = 64;
  const std::int64_t width = rounded_up(model_.config.hidden, 16);
  rows_.with().pool.run_pieces(width, columns, [&](std::int64_t first, std::int64_t count, int) {
    for (const auto& segment : batch.segments)
      for (std::int64_t i = 0; i < segment.rows; ++i) {
        const float* from = rows_.scratch().gradient.row(segment.first + i) + first;
        const std::int64_t token = batch.tokens[to_size(segment.first + i)];
        std::array<float, columns> scaled;
        std::transform(from, from + count, scaled.data(), [&](float x) { return x * model_.config.embedding_factor; });
        rows_.kernels().add(scaled.data(), count,
                            model_.embeddings.gradient + token * model_.embeddings.stride + first);
        if (model_.positions_gradient)
          rows_.kernels().add(from, count, model_.positions_gradient + i * model_.position_stride + first);
      }
  });
}

void cpu_train_pass::forward(const training_rows& batch, bool keep) {
  embed(batch, inputs_[0]);
  tokens_.bring(batch, inputs_[0]);
  for (std::size_t layer = 0; layer < model_.layers.size(); ++layer) {
    forward_layer(rows_of(batch, layer, keep), inputs_[layer + 1]);
    rows_.give_way();
  }
}

void cpu_train_pass::forward_layer(const layer_rows& at, float_rows out) {
  const float_rows middle = rows_.middle_of(at.a);
  rows_.normalize(at.weights.attention_norm, at.in, rows_.scratch().normed);
  mix(at, middle);
  if (!finishes_layers(model_.config)) return mlp_.forward(at, middle, out);
  mlp_.forward(at, middle, rows_.scratch().finished);
  tokens_.forward(at, rows_.scratch().finished, out);
}

void cpu_train_pass::backward_layer(const layer_rows& at) {
  const model_config& config = model_.config;
  const scratch_rows& scratch = rows_.scratch();
  const bool frozen_below = at.layer == 0 && !model_.embeddings.gradient;
  if (config.output_norms)  // the rows between attention and mlp were not kept
    rows_.add_normalized(at.weights.attention_output_norm, at.in, at.a.attended, rows_.middle_of(at.a));
  if (finishes_layers(config)) tokens_.backward(at);
  mlp_.backward(at);
  const const_float_rows given = rows_.output_gradient(at.weights.attention_output_norm, at.a.attended);
  mix_back(at, given, frozen_below ? gradient_target{} : rows_.input_gradient());
  if (frozen_below) return;
  mlp_.join_waiting();
  if (config.input_norms) rows_.normalize_back(at.weights.attention_norm, at.in, rows_.inner(), scratch.gradient);
}

void cpu_train_pass::mix(const layer_rows& at, float_rows out) {
  switch (model_.config.mixer_of(at.layer)) {
    case mixer_kind::attention:
      return latent_ ? latent_->forward(at, out) : attention_->forward(at, out);
    case mixer_kind::delta:
      return delta_->forward(at, out);
    case mixer_kind::convolution:
      return convolution_.forward(at, out);
  }
}

void cpu_train_pass::mix_back(const layer_rows& at, const_float_rows given, gradient_target to) {
  switch (model_.config.mixer_of(at.layer)) {
    case mixer_kind::attention:
      return latent_ ? latent_->backward(at, given, to) : attention_->backward(at, given, to);
    case mixer_kind::delta:
      return delta_->backward(at, given, to);
    case mixer_kind::convolution:
      return convolution_.backward(at, given, to);
  }
}

}  // namespace troupe
