// How wide the rows of a pass are, and what it takes.
#include <algorithm>

#include "base/to_size.hpp"
#include "model/train/passes/cpu_train_pass.hpp"

namespace troupe {
namespace {

/// Of what linear layers read and make.
std::int64_t widest_row(const model_config& config) {
  std::int64_t widest = std::max(config.hidden, config.ffn);
  for (std::int64_t layer = 0; layer < config.layers; ++layer)
    for (const linear_kind kind : linear_kinds_of(config, layer)) {
      const auto [outs, ins] = linear_shape(config, layer, kind);
      widest = std::max({widest, outs, ins});
    }
  return widest;
}

std::int64_t widest_queries(const model_config& config) {
  std::int64_t widest = 0;
  for (std::int64_t layer = 0; layer < config.layers; ++layer)
    widest = std::max(widest, linear_shape(config, layer, linear_kind::q).first);
  if (config.is_latent()) widest = std::max(widest, config.heads * config.latent.row());
  return widest;
}

bool any_has(std::span<const trained_layer> layers, linear_kind kind) {
  return std::any_of(layers.begin(), layers.end(), [&](const trained_layer& layer) { return layer[kind].w.outs > 0; });
}

bool any_adapts(std::span<const trained_layer> layers, linear_kind kind) {
  return std::any_of(layers.begin(), layers.end(),
                     [&](const trained_layer& layer) { return layer[kind].lora.rank > 0; });
}

}  // namespace

cpu_train_pass::row_strides::row_strides(const trained_model& model)
    : hidden(train_stride(model.config.hidden)),
      q(train_stride(widest_queries(model.config))),
      kv(train_stride(model.config.widest_keys())),
      ffn(train_stride(model.config.widest_mlp())),
      channel(train_stride(model.config.delta.channels())),
      value(train_stride(model.config.delta.values())),
      share(train_stride(model.config.delta.value_heads)),
      branch(model.config.mixes_by(mixer_kind::convolution) ? train_stride(3 * model.config.hidden) : 0),
      token(model.config.layer_embedding > 0 ? train_stride(model.config.layer_embedding) : 0),
      down(train_stride(model.config.latent.query_rank)),
      query(train_stride(model.config.heads * model.config.latent.query())),
      given(train_stride(model.config.heads * model.config.latent.value)),
      part(train_stride(std::max({model.config.latent.rank, model.config.latent.plain, model.config.latent.value}))),
      lora(rounded_up(largest_rank(model), 16)),
      widest(widest_row(model.config)) {}

std::int64_t cpu_train_pass::loss_rows_of(const trained_model& model, std::int64_t most_rows) {
  constexpr std::int64_t most_logits = 8 << 20;
  return std::min(most_rows, std::clamp<std::int64_t>(most_logits / model.config.vocab_size / 16 * 16, 16, 1024));
}

/// Of any of these layers in turn, but what none of them needs: visit(buffer, stride).
template <class Visit>
void cpu_train_pass::each_activation(activations& a, std::span<const trained_layer> layers, const model_config& config,
                                     const row_strides& s, Visit visit) {
  if (any_has(layers, linear_kind::q)) {
    visit(a.q, s.q);
    visit(a.k, s.kv);
    if (!config.is_latent()) visit(a.v, s.kv);
    visit(a.mixed, s.q);
  }
  if (any_has(layers, linear_kind::q_down)) visit(a.down, s.down);
  if (config.is_latent()) visit(a.values, s.given);
  if (any_has(layers, linear_kind::delta_qkv)) {
    visit(a.qkv, s.channel);
    visit(a.z, s.value);
    if (!config.delta.is_state_space) visit(a.delta_b, s.share);
    visit(a.delta_a, s.share);
    visit(a.answered, s.value);
  }
  if (any_has(layers, linear_kind::convolution_in)) visit(a.branches, s.branch), visit(a.convolved, s.hidden);
  if (config.output_norms)
    visit(a.attended, s.hidden), visit(a.fed, s.hidden);
  else
    visit(a.middle, s.hidden);
  if (config.experts.apart) visit(a.beside, s.hidden), visit(a.chosen, s.hidden);
  if (config.layer_embedding > 0) visit(a.token_gates, s.token), visit(a.token_made, s.hidden);
  if (any_has(layers, linear_kind::up)) visit(a.up, s.ffn);
  if (any_has(layers, linear_kind::gate)) visit(a.gate, s.ffn);
  for (const linear_kind kind : every_linear)
    if (any_adapts(layers, kind)) visit(a.lora[to_size(kind)], s.lora);
}

/// Of those that layers use in turn: visit(pointer to member, stride).
template <class Visit>
void cpu_train_pass::each_row_buffer(const model_config& config, const row_strides& s, Visit visit) {
  using p = cpu_train_pass;
  visit(&p::normed_, s.hidden);
  if (config.output_norms) visit(&p::middle_, s.hidden);
  if (config.joint_qk_norm) visit(&p::normed_q_, s.q), visit(&p::normed_k_, s.kv);
  if (config.is_latent()) {
    visit(&p::normed_k_, s.kv);
    visit(&p::own_queries_, s.query);
    visit(&p::dgiven_, s.given);
    visit(&p::part_, s.part);
    visit(&p::part_gradient_, s.part);
  }
  if (config.latent.query_rank > 0) visit(&p::normed_down_, s.down), visit(&p::ddown_, s.down);
  visit(&p::gradient_, s.hidden);
  if (config.parallel) visit(&p::mlp_input_gradient_, s.hidden);
  visit(&p::inner_, std::max({s.hidden, s.q, s.value}));
  visit(&p::active_, s.ffn);
  visit(&p::active_gradient_, s.ffn);
  if (config.experts.shared_gate) visit(&p::shares_, outs_per_block), visit(&p::share_gradients_, outs_per_block);
  visit(&p::dq_, s.q);
  visit(&p::dk_, s.kv);
  visit(&p::dv_, s.kv);
  if (finishes_layers(config) || config.experts.apart) visit(&p::finished_, s.hidden);
  if (config.experts.apart) visit(&p::given_, s.hidden), visit(&p::routed_, s.hidden);
  if (config.layer_embedding > 0) {
    visit(&p::token_numbers_, train_stride(config.layers * config.layer_embedding));
    visit(&p::token_active_, s.token);
    visit(&p::token_gradient_, s.token);
  }
  if (config.mixes_by(mixer_kind::convolution)) visit(&p::dbranches_, s.branch);
  if (config.mixes_by(mixer_kind::delta)) {
    visit(&p::dqkv_, s.channel);
    visit(&p::dz_, s.value);
    visit(&p::db_, s.share);
    visit(&p::da_, s.share);
    if (config.delta.is_state_space) visit(&p::normed_values_, s.value);
  }
  if (s.lora > 0) visit(&p::dropped_, train_stride(s.widest)), visit(&p::lora_gradient_, s.lora);
}

std::int64_t cpu_train_pass::floats_of_row(const trained_model& model, const options& chosen, const row_strides& s) {
  const std::span<const trained_layer> layers(model.layers);
  std::int64_t floats = (static_cast<std::int64_t>(layers.size()) + 1) * s.hidden;  // inputs_
  const auto add = [&](const auto& /*which*/, std::int64_t stride) { floats += stride; };
  activations none;
  each_activation(none, layers, model.config, s, add);
  for (std::size_t i = 1; chosen.keep_activations && i < layers.size(); ++i)
    each_activation(none, layers.subspan(i, 1), model.config, s, add);
  each_row_buffer(model.config, s, add);
  return floats + (model.config.sharing_layers > 0 ? 8 * s.kv : 0);  // shared_
}

std::int64_t cpu_train_pass::bytes(const trained_model& model, const options& chosen, int threads) {
  const model_config& config = model.config;
  const row_strides strides(model);
  constexpr auto a_float = static_cast<std::int64_t>(sizeof(float));
  const std::int64_t rows = chosen.most_rows * floats_of_row(model, chosen, strides) * a_float;
  const std::int64_t integers = chosen.precision == train_precision::exact ? 0 : chosen.most_rows * strides.widest * 4;
  const std::int64_t loss = loss_rows_of(model, chosen.most_rows) * a_float *
                            (2 * strides.hidden + (config.logit_cap != 0 ? 2 : 1) * train_stride(config.vocab_size));
  const bool has_delta = config.mixes_by(mixer_kind::delta);
  const std::int64_t scratch = attention_pass::scratch_floats(config, chosen.most_positions) +
                               (has_delta ? delta_pass::scratch_floats(config, chosen.most_positions) : 0);
  const std::int64_t shares = has_delta ? chosen.most_rows * delta_pass::row_floats(config) * a_float : 0;
  return rows + integers + loss + shares + threads * scratch * a_float +
         (config.experts.count > 0 ? expert_pass::bytes(config, chosen.most_rows) : 0);
}

cpu_train_pass::buffer cpu_train_pass::take(std::int64_t stride) const {
  return buffer(to_size(options_.most_rows * stride));
}

void cpu_train_pass::take_row_memory() {
  const model_config& config = model_.config;
  each_row_buffer(config, strides_,
                  [&](buffer cpu_train_pass::*which, std::int64_t stride) { this->*which = take(stride); });
  for (shared_rows& each : shared_)
    if (config.sharing_layers > 0)
      for (buffer* rows : {&each.k, &each.v, &each.dk, &each.dv}) *rows = take(strides_.kv);
  const int threads = with_.pool.threads();
  if (config.has_two_kinds_of_heads()) wide_attention_.emplace(config, options_.most_positions, threads, true);
  if (config.mixes_by(mixer_kind::delta)) delta_.emplace(config, options_.most_rows, options_.most_positions, threads);
}

void cpu_train_pass::take_loss_memory() {
  final_ = buffer(to_size(loss_rows_ * strides_.hidden));
  final_gradient_ = buffer(to_size(loss_rows_ * strides_.hidden));
  logits_ = buffer(to_size(loss_rows_ * logit_stride_));
  if (model_.config.logit_cap != 0) slopes_ = buffer(logits_.size());
}

cpu_train_pass::activations cpu_train_pass::make_activations(std::span<const trained_layer> layers) const {
  activations a;
  each_activation(a, layers, model_.config, strides_,
                  [&](buffer& memory, std::int64_t stride) { memory = take(stride); });
  return a;
}

}  // namespace troupe
