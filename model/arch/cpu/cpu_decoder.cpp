#include "model/arch/cpu/cpu_decoder.hpp"

#include <algorithm>

#include "model/ops/pack.hpp"

namespace troupe {

cpu_decoder::cpu_decoder(std::shared_ptr<const loaded_model> model, const options& chosen, const compute& with)
    : decoder(std::move(model), chosen),
      products_(*model_, options_, with),
      states_(model_->config, options_.first_layer, options_.layers, options_.states),
      attention_(products_, options_),
      mlp_(products_, options_) {
  const model_config& config = model_->config;
  if (config.mixes_by(mixer_kind::delta)) delta_.emplace(products_, states_, options_);
  if (config.mixes_by(mixer_kind::convolution)) convolution_.emplace(products_, states_, options_);
  if (config.layer_embedding > 0) tokens_.emplace(products_, options_);
}

void cpu_decoder::embed(const pass& batch, std::span<const std::int32_t> tokens, float* hidden) {
  for (const pass_sequence& sequence : batch.sequences)
    products_.pool().run_each(sequence.rows, 16, [&](int i) {
      float* row = hidden + (sequence.first_row + i) * hidden_stride();
      unpack_row(model_->embeddings, tokens[to_size(sequence.first_row + i)], row);
      if (const float factor = model_->config.embedding_factor; factor != 1)
        std::transform(row, row + model_->config.hidden, row, [&](float x) { return x * factor; });
      if (!model_->positions) return;
      products_.kernels().add(model_->positions + (sequence.position + i) * hidden_stride(), model_->config.hidden,
                              row);
    });
  if (tokens_) tokens_->bring(batch, tokens, {hidden, hidden_stride()});
}

void cpu_decoder::run(const pass& batch, float* hidden) {
  products_.begin(batch);
  attention_.begin(batch);
  const std::int64_t end = options_.first_layer + options_.layers;
  for (std::int64_t layer = options_.first_layer; layer < end; ++layer) {
    const layer_pass at{batch, layer, model_->layers[to_size(layer)], {hidden, hidden_stride()}};
    mix(at);
    mlp_.run(at);
    finish_layer(at);
  }
}

void cpu_decoder::mix(const layer_pass& at) {
  switch (model_->config.mixer_of(at.layer)) {
    case mixer_kind::attention:
      return attention_.run(at);
    case mixer_kind::delta:
      return delta_->run(at);
    case mixer_kind::convolution:
      return convolution_->run(at);
  }
}

void cpu_decoder::finish_layer(const layer_pass& at) {
  if (tokens_) tokens_->add(at);
  if (const float* factor = at.weights.factor)
    products_.pool().run_each(at.batch.rows, 8, [&](int row) {
      products_.kernels().multiply(at.hidden.row(row), model_->config.hidden, *factor);
    });
}

float_rows cpu_decoder::lend(std::size_t rows, std::int64_t stride) {
  const std::size_t needed = rows * to_size(stride);
  if (lent_.size() < needed) lent_ = aligned_buffer<float>(needed);
  return {lent_.data(), stride};
}

const float* cpu_decoder::logits(const float* hidden, const wanted_logits& wanted) {
  const std::span<const int> rows = wanted.rows;
  if (rows.empty()) return nullptr;
  const float_rows out = lend(rows.size(), logit_stride()), normed = products_.normed();
  const int count = static_cast<int>(rows.size());
  const linear_weights head{model_->head, nullptr};
  products_.multiply_alone(count, normed, {std::nullopt, head, out, products_.cuts().vocab}, [&](int i) {
    products_.normalize(model_->final_norm, hidden + rows[to_size(i)] * hidden_stride(), normed.row(i));
  });
  finish_logits(count, out);
  products_.gather(out, count, products_.cuts().vocab, 0);
  return out.data;
}

void cpu_decoder::finish_logits(int rows, float_rows logits) const {
  const float factor = model_->config.logit_factor, cap = model_->config.logit_cap;
  if (factor == 1 && cap == 0) return;
  constexpr std::int64_t columns = 4096;
  const column_cut& cut = products_.cuts().vocab;
  products_.pool().run_pieces(cut.count(), columns, [&](std::int64_t first, std::int64_t count, int) {
    for (int row = 0; row < rows; ++row) {
      float* part = logits.row(row) + cut.first + first;
      if (factor != 1) products_.kernels().multiply(part, count, factor);
      if (cap != 0) products_.kernels().cap(part, count, cap);
    }
  });
}

const float* cpu_decoder::normalized(const float* hidden, std::span<const int> rows) {
  const float_rows out = lend(rows.size(), hidden_stride());
  products_.pool().run_each(static_cast<std::int64_t>(rows.size()), 16, [&](int i) {
    products_.normalize(model_->final_norm, hidden + rows[to_size(i)] * hidden_stride(), out.row(i));
  });
  return out.data;
}

}  // namespace troupe
