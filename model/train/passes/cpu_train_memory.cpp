#include "model/train/passes/cpu_train_memory.hpp"

#include <algorithm>

#include "base/rounding.hpp"
#include "model/train/passes/routed_experts.hpp"
#include "model/train/passes/segment_attention.hpp"
#include "model/train/passes/segment_delta.hpp"

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

/// Of any of these layers in turn, but what none of them needs: visit(rows, stride).
template <class Visit>
void each_activation(layer_activations& a, std::span<const trained_layer> layers, const model_config& config,
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

/// The same of those that layers use in turn.
template <class Visit>
void each_scratch(scratch_rows& to, const model_config& config, const row_strides& s, Visit visit) {
  visit(to.normed, s.hidden);
  if (config.output_norms) visit(to.middle, s.hidden);
  if (config.joint_qk_norm) visit(to.normed_q, s.q), visit(to.normed_k, s.kv);
  if (config.is_latent()) {
    visit(to.normed_k, s.kv);
    visit(to.own_queries, s.query);
    visit(to.dgiven, s.given);
    visit(to.part, s.part);
    visit(to.dpart, s.part);
  }
  if (config.latent.query_rank > 0) visit(to.normed_down, s.down), visit(to.ddown, s.down);
  visit(to.gradient, s.hidden);
  if (config.parallel) visit(to.mlp_input_gradient, s.hidden);
  visit(to.inner, std::max({s.hidden, s.q, s.value}));
  visit(to.active, s.ffn);
  visit(to.dactive, s.ffn);
  if (config.experts.shared_gate) visit(to.shares, outs_per_block), visit(to.dshares, outs_per_block);
  visit(to.dq, s.q);
  visit(to.dk, s.kv);
  visit(to.dv, s.kv);
  if (finishes_layers(config) || config.experts.apart) visit(to.finished, s.hidden);
  if (config.experts.apart) visit(to.given, s.hidden), visit(to.routed, s.hidden);
  if (config.layer_embedding > 0) {
    visit(to.token_numbers, train_stride(config.layers * config.layer_embedding));
    visit(to.token_active, s.token);
    visit(to.dtoken_active, s.token);
  }
  if (config.mixes_by(mixer_kind::convolution)) visit(to.dbranches, s.branch);
  if (config.mixes_by(mixer_kind::delta)) {
    visit(to.dqkv, s.channel);
    visit(to.dz, s.value);
    visit(to.db, s.share);
    visit(to.da, s.share);
    if (config.delta.is_state_space) visit(to.normed_values, s.value);
  }
  if (s.lora > 0) visit(to.dropped, train_stride(s.widest)), visit(to.dlora, s.lora);
}

std::int64_t floats_of_row(const trained_model& model, const train_pass::options& chosen, const row_strides& s) {
  const std::span<const trained_layer> layers(model.layers);
  std::int64_t floats = (static_cast<std::int64_t>(layers.size()) + 1) * s.hidden;  // what layers read
  const auto add = [&](const row_memory& /*rows*/, std::int64_t stride) { floats += stride; };
  layer_activations activations;
  each_activation(activations, layers, model.config, s, add);
  for (std::size_t i = 1; chosen.keep_activations && i < layers.size(); ++i)
    each_activation(activations, layers.subspan(i, 1), model.config, s, add);
  scratch_rows scratch;
  each_scratch(scratch, model.config, s, add);
  return floats + (model.config.sharing_layers > 0 ? 8 * s.kv : 0);  // keys and values of two ropes, and gradients
}

}  // namespace

row_strides::row_strides(const trained_model& model)
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

layer_activations make_activations(std::span<const trained_layer> layers, const model_config& config,
                                   const row_strides& strides, std::int64_t rows) {
  layer_activations made;
  each_activation(made, layers, config, strides,
                  [&](row_memory& to, std::int64_t stride) { to = row_memory(rows, stride); });
  return made;
}

scratch_rows make_scratch(const model_config& config, const row_strides& strides, std::int64_t rows) {
  scratch_rows made;
  each_scratch(made, config, strides, [&](row_memory& to, std::int64_t stride) { to = row_memory(rows, stride); });
  return made;
}

std::int64_t loss_rows(const model_config& config, std::int64_t most_rows) {
  constexpr std::int64_t most_logits = 8 << 20;
  return std::min(most_rows, std::clamp<std::int64_t>(most_logits / config.vocab_size / 16 * 16, 16, 1024));
}

std::int64_t pass_bytes(const trained_model& model, const train_pass::options& chosen, int threads) {
  const model_config& config = model.config;
  const row_strides strides(model);
  constexpr auto a_float = static_cast<std::int64_t>(sizeof(float));
  const std::int64_t rows = chosen.most_rows * floats_of_row(model, chosen, strides) * a_float;
  const std::int64_t integers = chosen.precision == train_precision::exact ? 0 : chosen.most_rows * strides.widest * 4;
  const std::int64_t loss = loss_rows(config, chosen.most_rows) * a_float *
                            (2 * strides.hidden + (config.logit_cap != 0 ? 2 : 1) * train_stride(config.vocab_size));
  const bool has_delta = config.mixes_by(mixer_kind::delta);
  const std::int64_t scratch = segment_attention::scratch_floats(config, chosen.most_positions) +
                               (has_delta ? segment_delta::scratch_floats(config, chosen.most_positions) : 0);
  const std::int64_t shares = has_delta ? chosen.most_rows * segment_delta::row_floats(config) * a_float : 0;
  return rows + integers + loss + shares + threads * scratch * a_float +
         (config.experts.count > 0 ? routed_experts::bytes(config, chosen.most_rows) : 0);
}

}  // namespace troupe
