#include "model/arch/cpu_decoder.hpp"

#include <algorithm>
#include <array>

#include "base/to_size.hpp"
#include "model/arch/row_steps.hpp"
#include "model/ops/pack.hpp"

namespace troupe {
namespace {

constexpr std::int64_t lora_stride = most_adapter_rank;

/// Of a pass's rows, and of those that lie at the places of some rows' experts or heads.
std::array<input_room, 3> inputs_of(const model_config& config, int max_rows) {
  std::int64_t widest = config.hidden;
  for (std::int64_t layer = 0; layer < config.layers; ++layer)
    for (const linear_kind kind : linear_kinds_of(config, layer))
      widest = std::max(widest, linear_shape(config, layer, kind).second);
  return {{{max_rows, widest},
           {expert_routes::most_places(config, max_rows), std::max(config.hidden, config.ffn)},
           {most_latent_places(config), std::max(config.latent.plain, config.latent.rank)}}};
}

}  // namespace

cpu_decoder::cpu_decoder(std::shared_ptr<const loaded_model> model, const options& chosen, const compute& with)
    : decoder(std::move(model), chosen),
      with_(with),
      gather_(chosen.split),
      heads_{output_cuts(chosen.split, model_->config), model_->config.heads / model_->config.kv_heads, {}},
      wide_heads_{output_cuts(chosen.split, model_->config, model_->config.has_two_kinds_of_heads()),
                  model_->config.heads / std::max<std::int64_t>(model_->config.wide.kv_heads, 1),
                  {}},
      cuts_(heads_.cuts),
      kv_(model_->config, chosen.split, options_.first_layer, options_.layers, chosen.blocks, chosen.kv),
      states_(model_->config, options_.first_layer, options_.layers, chosen.states),
      q_stride_(padded_row(std::max(cuts_.q.ends.back(), wide_heads_.cuts.q.ends.back()))),
      kv_stride_(padded_row(model_->config.widest_keys())),
      mlp_stride_(padded_row(model_->config.widest_mlp())),
      quantized_(with.kernels, inputs_of(model_->config, chosen.max_rows)),
      routes_(model_->config, with.kernels) {
  const model_config& config = model_->config;
  check(chosen.split, config);
  const std::int64_t rows = chosen.max_rows;
  normed_ = floats(rows, hidden_stride());
  q_ = floats(rows, q_stride_);
  mixed_ = floats(rows, q_stride_);
  k_ = floats(rows, kv_stride_);
  v_ = floats(rows, kv_stride_);
  up_ = floats(rows, mlp_stride_);
  gate_ = aligned_buffer<float>(config.gated_mlp ? up_.size() : 0);
  if (config.experts.count > 0) take_expert_memory();
  if (config.layer_embedding > 0) take_token_memory();
  if (config.is_latent()) take_latent_memory();
  if (config.mixes_by(mixer_kind::delta)) take_delta_memory();
  if (config.mixes_by(mixer_kind::convolution)) take_convolution_memory();
  take_angles();
  scratch_stride_ = attention_scratch(options_.context, config.widest_head());  // room for a padded head's norm, too
  scratch_ = floats(with.pool.threads(), scratch_stride_);
}

/// The local rope only where some layer has it.
void cpu_decoder::take_angles() {
  const model_config& config = model_->config;
  const auto add = [&](layer_rope which, const rope_config& rope) {
    const std::int64_t dim = config.turned_dim(which);
    turned_.push_back({dim, rope_angles(rope, dim, options_.rope_context), floats(options_.max_rows, dim / 2),
                       floats(options_.max_rows, dim / 2)});
  };
  if (config.position != position_kind::rotary) return;
  add(layer_rope::global, config.rope);
  if (config.has_local_rope()) add(layer_rope::local, config.local_rope);
}

void cpu_decoder::embed(const pass& batch, std::span<const std::int32_t> tokens, float* hidden) {
  for (const pass_sequence& sequence : batch.sequences)
    with_.pool.run_each(sequence.rows, 16, [&](int i) {
      float* row = hidden + (sequence.first_row + i) * hidden_stride();
      unpack_row(model_->embeddings, tokens[to_size(sequence.first_row + i)], row);
      if (const float factor = model_->config.embedding_factor; factor != 1)
        std::transform(row, row + model_->config.hidden, row, [&](float x) { return x * factor; });
      if (!model_->positions) return;
      with_.kernels.add(model_->positions + (sequence.position + i) * hidden_stride(), model_->config.hidden, row);
    });
  if (model_->config.layer_embedding > 0) bring_tokens(batch, tokens, {hidden, hidden_stride()});
}

void cpu_decoder::run(const pass& batch, float* hidden) {
  prepare_angles(batch);
  group_by_adapter(batch);
  stores_first_ = std::ranges::any_of(batch.sequences, [](const pass_sequence& each) { return each.rows > 1; });
  share_out_heads(batch, heads_);
  if (model_->config.has_two_kinds_of_heads()) share_out_heads(batch, wide_heads_);
  const std::int64_t end = options_.first_layer + options_.layers;
  for (std::int64_t layer = options_.first_layer; layer < end; ++layer) {
    mix(batch, layer, {hidden, hidden_stride()});
    feed_forward(batch, layer, {hidden, hidden_stride()});
    finish_layer(batch, layer, {hidden, hidden_stride()});
  }
}

void cpu_decoder::mix(const pass& batch, std::int64_t layer, float_rows hidden) {
  switch (model_->config.mixer_of(layer)) {
    case mixer_kind::attention:
      return attend(batch, layer, hidden);
    case mixer_kind::delta:
      return run_delta(batch, layer, hidden);
    case mixer_kind::convolution:
      return run_convolution(batch, layer, hidden);
  }
}

aligned_buffer<float> cpu_decoder::floats(std::int64_t rows, std::int64_t stride) {
  return aligned_buffer<float>(to_size(rows * stride));
}

float* cpu_decoder::lend(std::size_t rows, std::int64_t stride) {
  const std::size_t needed = rows * to_size(stride);
  if (lent_.size() < needed) lent_ = aligned_buffer<float>(needed);
  return lent_.data();
}

const float* cpu_decoder::logits(const float* hidden, const wanted_logits& wanted) {
  const std::span<const int> rows = wanted.rows;
  if (rows.empty()) return nullptr;
  const float_rows normed{normed_.data(), hidden_stride()}, out{lend(rows.size(), logit_stride()), logit_stride()};
  const int count = static_cast<int>(rows.size());
  const linear_weights head{model_->head, nullptr};
  const linear_product products[] = {{std::nullopt, head, out, cuts_.vocab}};
  prepare_input(count, normed, products, [&](int i) {
    normalize(model_->final_norm, hidden + rows[to_size(i)] * hidden_stride(), normed.row(i));
  });
  matmul(with_, std::span(jobs_of(count, normed, products).data(), 1));
  finish_logits(count, out);
  gather_(with_, out.data, count, out.stride, cuts_.vocab, 0);
  return out.data;
}

void cpu_decoder::finish_logits(int rows, float_rows logits) const {
  const float factor = model_->config.logit_factor, cap = model_->config.logit_cap;
  if (factor == 1 && cap == 0) return;
  constexpr std::int64_t columns = 4096;
  with_.pool.run_pieces(cuts_.vocab.count(), columns, [&](std::int64_t first, std::int64_t count, int) {
    for (int row = 0; row < rows; ++row) {
      float* part = logits.row(row) + cuts_.vocab.first + first;
      if (factor != 1) with_.kernels.multiply(part, count, factor);
      if (cap != 0) with_.kernels.cap(part, count, cap);
    }
  });
}

const float* cpu_decoder::normalized(const float* hidden, std::span<const int> rows) {
  float* const out = lend(rows.size(), hidden_stride());
  with_.pool.run_each(static_cast<std::int64_t>(rows.size()), 16, [&](int i) {
    normalize(model_->final_norm, hidden + rows[to_size(i)] * hidden_stride(), out + i * hidden_stride());
  });
  return out;
}

void cpu_decoder::prepare_angles(const pass& batch) {
  for (turned_rows& rope : turned_)
    for (const pass_sequence& sequence : batch.sequences)
      with_.pool.run_each(sequence.rows, 16, [&](int i) {
        const std::int64_t at = (sequence.first_row + i) * (rope.dim / 2);
        rope.angles.at(sequence.position + i, rope.cosines.data() + at, rope.sines.data() + at);
      });
}

void cpu_decoder::group_by_adapter(const pass& batch) {
  adapter_runs_.clear();
  for (const pass_sequence& sequence : batch.sequences) {
    if (!sequence.adapter) continue;
    adapter_run* last = adapter_runs_.empty() ? nullptr : &adapter_runs_.back();
    if (last && last->adapter == sequence.adapter && last->first_row + last->rows == sequence.first_row)
      last->rows += sequence.rows;
    else
      adapter_runs_.push_back({sequence.adapter, sequence.first_row, sequence.rows});
  }
}

void cpu_decoder::project_heads(const pass& batch, std::int64_t layer, float_rows hidden) {
  const layer_weights& weights = weights_of(layer);
  const output_cuts& cuts = shape_of(layer).cuts;
  const float_rows normed{normed_.data(), hidden_stride()};
  const linear_product all[] = {{linear_kind::q, weights.q, {q_.data(), q_stride_}, cuts.q},
                                {linear_kind::k, weights.k, {k_.data(), kv_stride_}, cuts.kv},
                                {linear_kind::v, weights.v, {v_.data(), kv_stride_}, cuts.kv}};
  const std::span<const linear_product> qkv(all, weights.v.w.weights ? 3 : weights.k.w.weights ? 2 : 1);
  prepare_input(batch.rows, normed, qkv,
                [&](int row) { normalize(weights.attention_norm, hidden.row(row), normed.row(row)); });
  multiply(batch, layer, normed, qkv);
  if (model_->config.joint_qk_norm) {
    normalize_heads(batch, weights.q_norm, {q_.data(), q_stride_}, cuts.q);
    normalize_heads(batch, weights.k_norm, {k_.data(), kv_stride_}, cuts.kv);
  }
}

void cpu_decoder::attend(const pass& batch, std::int64_t layer, float_rows hidden) {
  const layer_weights& weights = weights_of(layer);
  const bool latent = model_->config.is_latent();
  if (latent)
    project_latent(batch, layer, hidden);
  else
    project_heads(batch, layer, hidden);
  attend_heads(layer);
  const float_rows mixed = latent ? values_of_heads(batch, layer) : float_rows{mixed_.data(), q_stride_};
  const linear_product o[] = {output_product(linear_kind::o, weights.o, hidden)};
  const std::int64_t width = weights.o.w.ins;
  prepare_gathered(batch.rows, mixed, shape_of(layer).cuts.q, o, [&](int row) {
    if (model_->config.has_two_kinds_of_heads()) end_row(mixed.row(row), width);
  });
  multiply(batch, layer, mixed, o);
  finish_output(batch, weights.attention_output_norm, hidden);
}

/// All heads of a row at once, which all ranks need whole for that.
void cpu_decoder::normalize_heads(const pass& batch, const norm_weights& norm, float_rows heads,
                                  const column_cut& cut) {
  gather_(with_, heads.data, batch.rows, heads.stride, cut);
  with_.pool.run_each(batch.rows, 8, [&](int row) {
    with_.kernels.rms_norm(heads.row(row), norm.weight, cut.ends.back(), model_->config.norm_eps, heads.row(row));
  });
}

void cpu_decoder::feed_forward(const pass& batch, std::int64_t layer, float_rows hidden) {
  const layer_weights& weights = weights_of(layer);
  const bool mixes = !weights.experts.empty(), apart = model_->config.experts.apart;
  if (mixes && apart)
    mix_experts_apart(batch, weights, hidden);
  else if (mixes)
    mix_experts(batch, weights, hidden);
  if (!weights.up.w.weights) return;
  const float_rows normed{normed_.data(), hidden_stride()};
  const float_rows up{up_.data(), mlp_stride_}, gate{gate_.data(), mlp_stride_};
  const column_cut cut = cut_blocks(gather_.split(), weights.up.w.outs);
  const linear_product both[] = {{linear_kind::up, weights.up, up, cut}, {linear_kind::gate, weights.gate, gate, cut}};
  const std::span<const linear_product> inner(both, model_->config.gated_mlp ? 2 : 1);
  const bool is_normed = (mixes && !apart) || model_->config.parallel;  // for the experts, or for attention
  prepare_input(batch.rows, normed, inner, [&](int row) {
    if (!is_normed) normalize(weights.mlp_norm, hidden.row(row), normed.row(row));
  });
  multiply(batch, layer, normed, inner);
  const linear_product down[] = {output_product(linear_kind::down, weights.down, hidden)};
  prepare_gathered(batch.rows, up, cut, down, [&](int row) {
    activate_mlp(weights, cut, gate, up, row);
    if (weights.shared_gate.weights)
      with_.kernels.multiply(up.row(row), weights.up.w.outs, experts_.shared_shares.data()[row * outs_per_block]);
  });
  multiply(batch, layer, up, down);
  if (mixes && apart) join_apart(batch, weights);
  finish_output(batch, weights.mlp_output_norm, hidden);
}

void cpu_decoder::finish_layer(const pass& batch, std::int64_t layer, float_rows hidden) {
  const layer_weights& weights = weights_of(layer);
  if (weights.token_out.w.weights) add_tokens(batch, layer, hidden);
  if (!weights.factor) return;
  with_.pool.run_each(
      batch.rows, 8, [&](int row) { with_.kernels.multiply(hidden.row(row), model_->config.hidden, *weights.factor); });
}

/// What a row's gate and up make, in place of up. Only gated models have rows of gates.
void cpu_decoder::activate_mlp(const layer_weights& weights, const column_cut& cut, const_float_rows gate,
                               float_rows up, int row) const {
  const std::int64_t width = weights.up.w.outs, columns = std::min(cut.last, width) - cut.first;
  float* own = up.row(row) + cut.first;
  if (!model_->config.gated_mlp) return activate_ungated(with_.kernels, model_->config, own, columns, own);
  activate_gated(with_.kernels, model_->config, gate.row(row) + cut.first, own, columns, own);
  if (!model_->config.has_mlps_of_one_width()) end_row(up.row(row), width);
}

cpu_decoder::linear_product cpu_decoder::output_product(linear_kind kind, const linear_weights& weights,
                                                        float_rows hidden) const {
  if (model_->config.output_norms) return {kind, weights, {normed_.data(), hidden_stride()}, cuts_.hidden};
  return {kind, weights, hidden, cuts_.hidden, true};
}

void cpu_decoder::finish_output(const pass& batch, const norm_weights& norm, float_rows hidden) {
  const bool normed = model_->config.output_norms;
  const float_rows made = normed ? float_rows{normed_.data(), hidden_stride()} : hidden;
  gather_(with_, made.data, batch.rows, made.stride, cuts_.hidden);
  if (!normed) return;
  with_.pool.run_each(batch.rows, 8, [&](int row) {
    normalize(norm, made.row(row), made.row(row));
    with_.kernels.add(made.row(row), hidden_stride(), hidden.row(row));
  });
}

template <class MakeRow>
void cpu_decoder::prepare_gathered(int rows, float_rows x, const column_cut& cut,
                                   std::span<const linear_product> products, MakeRow make_row) {
  if (gather_.split().is_whole()) return prepare_input(rows, x, products, make_row);
  with_.pool.run_each(rows, 8, [&](int row) { make_row(row); });
  gather_(with_, x.data, rows, x.stride, cut);
  prepare_input(rows, x, products, [](int) {});
}

std::array<matmul_args, cpu_decoder::most_products> cpu_decoder::jobs_of(
    int rows, float_rows x, std::span<const linear_product> products) const {
  std::array<matmul_args, most_products> jobs;
  for (std::size_t i = 0; i < products.size(); ++i) {
    const linear_product& p = products[i];
    jobs[i] = {.w = p.weights.w,
               .rows = rows,
               .q = quantized_.view(),
               .x = x.data,
               .x_stride = x.stride,
               .y = p.to.data,
               .y_stride = p.to.stride,
               .bias = p.weights.bias,
               .accumulate = p.accumulate,
               .first_block = p.columns.first_block(),
               .last_block = p.columns.last_block()};
  }
  return jobs;
}

void cpu_decoder::multiply(const pass& batch, std::int64_t layer, float_rows x,
                           std::span<const linear_product> products) {
  const auto jobs = jobs_of(batch.rows, x, products);
  find_adapters(layer, std::span(jobs.data(), products.size()), products);
  matmul(with_, std::span(jobs.data(), products.size()), adapters_);
}

/// y += B (scales * A x) for every run of rows with one adapter, one product after the other.
void cpu_decoder::find_adapters(std::int64_t layer, std::span<const matmul_args> jobs,
                                std::span<const linear_product> products) {
  constexpr auto stride = lora_stride * static_cast<std::int64_t>(most_products);
  adapters_.clear();
  for (std::size_t i = 0; i < products.size(); ++i) {
    if (!products[i].kind) continue;
    const matmul_args& job = jobs[i];
    for (const adapter_run& run : adapter_runs_) {
      const lora_weights* lora = run.adapter->find(layer, *products[i].kind);
      if (!lora) continue;
      if (lora_.size() == 0) lora_ = floats(options_.max_rows, stride);
      adapters_.push_back(
          {i,
           {.a = lora->a,
            .b = lora->b,
            .scales = lora->scales,
            .rows = run.rows,
            .x = job.x + run.first_row * job.x_stride,
            .x_stride = job.x_stride,
            .between = lora_.data() + run.first_row * stride + static_cast<std::int64_t>(i) * lora_stride,
            .between_stride = stride,
            .y = job.y + run.first_row * job.y_stride,
            .y_stride = job.y_stride}});
    }
  }
  for (std::size_t i = 1; i < adapters_.size(); ++i) adapters_[i - 1].adapter.next = &adapters_[i].adapter;
}

void cpu_decoder::normalize(const norm_weights& norm, const float* from, float* to) const {
  if (norm.weight)
    normalize_row(with_.kernels, model_->config, norm, from, to);
  else
    std::copy_n(from, hidden_stride(), to);
}

}  // namespace troupe
