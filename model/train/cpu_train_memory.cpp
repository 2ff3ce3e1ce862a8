// How wide the rows of a pass are, and what it takes.
#include <algorithm>

#include "base/to_size.hpp"
#include "model/train/cpu_train_pass.hpp"

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
  return widest;
}

bool any_has(std::span<const trained_layer> layers, linear_kind kind) {
  return std::any_of(layers.begin(), layers.end(), [&](const trained_layer& layer) { return layer[kind].w.outs > 0; });
}

std::int64_t adapted_kinds(std::span<const trained_layer> layers) {
  return std::count_if(every_linear.begin(), every_linear.end(), [&](linear_kind kind) {
    return std::any_of(layers.begin(), layers.end(),
                       [&](const trained_layer& layer) { return layer[kind].lora.rank > 0; });
  });
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
      lora(rounded_up(largest_rank(model), 16)),
      widest(widest_row(model.config)) {}

std::int64_t cpu_train_pass::loss_rows_of(const trained_model& model, std::int64_t most_rows) {
  constexpr std::int64_t most_logits = 8 << 20;
  return std::min(most_rows, std::clamp<std::int64_t>(most_logits / model.config.vocab_size / 16 * 16, 16, 1024));
}

/// A row of make_activations.
std::int64_t cpu_train_pass::floats_of_layers(std::span<const trained_layer> layers, const model_config& config,
                                              const row_strides& s) {
  return (any_has(layers, linear_kind::q) ? 2 * (s.q + s.kv) : 0) +
         (any_has(layers, linear_kind::delta_qkv) ? s.channel + 2 * (s.value + s.share) : 0) +
         (any_has(layers, linear_kind::convolution_in) ? s.branch + s.hidden : 0) +
         (config.output_norms ? 2 : 1) * s.hidden + (config.experts.apart ? 2 * s.hidden : 0) +
         (config.layer_embedding > 0 ? s.token + s.hidden : 0) + (config.gated_mlp ? 2 : 1) * s.ffn +
         adapted_kinds(layers) * s.lora;
}

std::int64_t cpu_train_pass::floats_of_row(const trained_model& model, const options& chosen, const row_strides& s) {
  const model_config& config = model.config;
  const std::span<const trained_layer> layers(model.layers);
  std::int64_t kept = floats_of_layers(layers, config, s);
  for (std::size_t i = 1; chosen.keep_activations && i < layers.size(); ++i)
    kept += floats_of_layers(layers.subspan(i, 1), config, s);
  const std::int64_t inputs = (static_cast<std::int64_t>(layers.size()) + 1) * s.hidden;
  const std::int64_t attended = s.q + 2 * s.kv + (config.joint_qk_norm ? s.q + s.kv : 0);
  const bool has_delta = config.mixes_by(mixer_kind::delta);
  const std::int64_t states = (has_delta ? s.channel + s.value + 2 * s.share : 0) + s.branch;
  const std::int64_t rest = (2 + config.output_norms + config.parallel) * s.hidden +
                            std::max({s.hidden, s.q, s.value}) + 2 * s.ffn +
                            2 * outs_per_block * config.experts.shared_gate;
  const std::int64_t shared = config.sharing_layers > 0 ? 8 * s.kv : 0;
  const std::int64_t tokens =
      config.layer_embedding > 0 ? train_stride(config.layers * config.layer_embedding) + 2 * s.token : 0;
  const bool finishes = config.layer_factors || config.layer_embedding > 0 || config.experts.apart;
  const std::int64_t finished = (finishes ? s.hidden : 0) + (config.experts.apart ? 2 * s.hidden : 0);
  const std::int64_t adapters = s.lora > 0 ? train_stride(s.widest) + s.lora : 0;
  return inputs + kept + attended + shared + tokens + finished + states + rest + adapters;
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
  return rows + integers + loss + threads * scratch * a_float +
         (config.experts.count > 0 ? expert_pass::bytes(config, chosen.most_rows) : 0);
}

cpu_train_pass::buffer cpu_train_pass::take(std::int64_t stride) const {
  return buffer(to_size(options_.most_rows * stride));
}

void cpu_train_pass::take_row_memory() {
  const model_config& config = model_.config;
  normed_ = take(strides_.hidden);
  if (config.output_norms) middle_ = take(strides_.hidden);
  if (config.joint_qk_norm) {
    normed_q_ = take(strides_.q);
    normed_k_ = take(strides_.kv);
  }
  gradient_ = take(strides_.hidden);
  if (config.parallel) beside_ = take(strides_.hidden);
  inner_ = take(std::max({strides_.hidden, strides_.q, strides_.value}));
  active_ = take(strides_.ffn);
  active_gradient_ = take(strides_.ffn);
  if (config.experts.shared_gate) shares_ = take(outs_per_block), share_gradients_ = take(outs_per_block);
  dq_ = take(strides_.q);
  dk_ = take(strides_.kv);
  dv_ = take(strides_.kv);
  if (config.has_two_kinds_of_heads())
    wide_attention_.emplace(config, options_.most_positions, with_.pool.threads(), true);
  for (shared_rows& each : shared_)
    if (config.sharing_layers > 0)
      for (buffer* rows : {&each.k, &each.v, &each.dk, &each.dv}) *rows = take(strides_.kv);
  if (finishes_layers() || config.experts.apart) finished_ = take(strides_.hidden);
  if (config.experts.apart) given_ = take(strides_.hidden), routed_ = take(strides_.hidden);
  if (config.layer_embedding > 0) take_token_memory();
  if (config.mixes_by(mixer_kind::convolution)) dbranches_ = take(strides_.branch);
  if (config.mixes_by(mixer_kind::delta)) {
    delta_.emplace(config, options_.most_rows, options_.most_positions, with_.pool.threads());
    dqkv_ = take(strides_.channel);
    dz_ = take(strides_.value);
    db_ = take(strides_.share);
    da_ = take(strides_.share);
  }
  if (strides_.lora > 0) {
    dropped_ = take(train_stride(strides_.widest));
    lora_gradient_ = take(strides_.lora);
  }
}

void cpu_train_pass::take_loss_memory() {
  final_ = buffer(to_size(loss_rows_ * strides_.hidden));
  final_gradient_ = buffer(to_size(loss_rows_ * strides_.hidden));
  logits_ = buffer(to_size(loss_rows_ * logit_stride_));
  if (model_.config.logit_cap != 0) slopes_ = buffer(logits_.size());
}

cpu_train_pass::activations cpu_train_pass::make_activations(std::span<const trained_layer> layers) const {
  activations a;
  if (any_has(layers, linear_kind::q)) {
    a.q = take(strides_.q);
    a.k = take(strides_.kv);
    a.v = take(strides_.kv);
    a.mixed = take(strides_.q);
  }
  if (any_has(layers, linear_kind::delta_qkv)) {
    a.qkv = take(strides_.channel);
    a.z = take(strides_.value);
    a.b = take(strides_.share);
    a.a = take(strides_.share);
    a.answered = take(strides_.value);
  }
  if (any_has(layers, linear_kind::convolution_in)) {
    a.branches = take(strides_.branch);
    a.convolved = take(strides_.hidden);
  }
  if (model_.config.output_norms)
    a.attended = take(strides_.hidden), a.fed = take(strides_.hidden);
  else
    a.middle = take(strides_.hidden);
  if (model_.config.experts.apart) a.beside = take(strides_.hidden), a.chosen = take(strides_.hidden);
  if (model_.config.layer_embedding > 0) a.token_gates = take(strides_.token), a.token_made = take(strides_.hidden);
  a.up = take(strides_.ffn);
  if (model_.config.gated_mlp) a.gate = take(strides_.ffn);
  for (const linear_kind kind : every_linear)
    if (std::any_of(layers.begin(), layers.end(),
                    [&](const trained_layer& layer) { return layer[kind].lora.rank > 0; }))
      a.lora[to_size(kind)] = take(strides_.lora);
  return a;
}

}  // namespace troupe
