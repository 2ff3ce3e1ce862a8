// A layer whose mlp is a mixture of experts: each row goes through those that the router chooses for it.
#include <algorithm>

#include "base/to_size.hpp"
#include "model/arch/cpu_decoder.hpp"
#include "model/arch/row_steps.hpp"

namespace troupe {
namespace {

/// Whether some matrix does: --keep may leave any of them as they are.
bool ask_for_integers(const layer_weights& weights) {
  return std::any_of(weights.experts.begin(), weights.experts.end(), [](const expert_weights& expert) {
    return is_integer(expert.gate.kind) || is_integer(expert.up.kind) || is_integer(expert.down.kind);
  });
}

}  // namespace

void cpu_decoder::take_expert_memory() {
  const model_config& config = model_->config;
  const int rows = std::min(options_.max_rows, expert_routes::rows_together);
  const std::int64_t places = expert_routes::most_places(config, rows);
  experts_.gate_stride = padded_row(config.ffn);
  experts_.scores = floats(rows, padded_outs(config.experts.count));
  experts_.places = floats(places, hidden_stride());
  experts_.gate = floats(places, experts_.gate_stride);
  experts_.up = floats(places, experts_.gate_stride);
  if (config.experts.apart) experts_.apart = floats(options_.max_rows, hidden_stride());
  if (config.experts.shared_gate) experts_.shared_shares = floats(options_.max_rows, outs_per_block);
}

/// Leaves the normalized rows in normed_.
void cpu_decoder::mix_experts(const pass& batch, const layer_weights& weights, float_rows hidden) {
  constexpr int at_once = expert_routes::rows_together;
  const float_rows normed{normed_.data(), hidden_stride()};
  const float_rows scores{experts_.scores.data(), padded_outs(model_->config.experts.count)};
  with_.pool.run_each(batch.rows, 8, [&](int row) { normalize(weights.mlp_norm, hidden.row(row), normed.row(row)); });
  for (int first = 0; first < batch.rows; first += at_once) {
    const float_rows some{normed.row(first), normed.stride};
    const int rows = std::min(at_once, batch.rows - first);
    routes_.choose(with_, {weights.router, weights.router_bias, weights.choice_bias}, some, rows, scores);
    run_experts(weights, some);
    add_visits({hidden.row(first), hidden.stride}, rows);
  }
  if (weights.shared_gate.weights)
    weigh_shared(with_, weights.shared_gate, normed, batch.rows, {experts_.shared_shares.data(), outs_per_block});
}

/// Leaves what they make aside, normalized, for join_apart.
void cpu_decoder::mix_experts_apart(const pass& batch, const layer_weights& weights, float_rows hidden) {
  constexpr int at_once = expert_routes::rows_together;
  const float_rows scores{experts_.scores.data(), padded_outs(model_->config.experts.count)};
  for (int first = 0; first < batch.rows; first += at_once) {
    const float_rows normed{normed_.data(), hidden_stride()};
    const float_rows in{hidden.row(first), hidden.stride},
        made{experts_.apart.data() + first * hidden_stride(), hidden_stride()};
    const int rows = std::min(at_once, batch.rows - first);
    const auto normalize_rows = [&](const norm_weights& norm, const_float_rows from, float_rows to) {
      with_.pool.run_each(rows, 8, [&](int row) { normalize(norm, from.row(row), to.row(row)); });
    };
    normalize_rows(weights.apart.router, in, normed);
    routes_.choose(with_, {.w = weights.router, .factors = weights.apart.share_factors}, normed, rows, scores);
    normalize_rows(weights.apart.experts, in, normed);
    run_experts(weights, normed);
    std::fill_n(made.data, rows * made.stride, 0.0f);
    add_visits(made, rows);
    normalize_rows(weights.apart.experts_output, made, made);
  }
}

/// What the mlp beside them made lies in normed_.
void cpu_decoder::join_apart(const pass& batch, const layer_weights& weights) {
  const float_rows beside{normed_.data(), hidden_stride()}, made{experts_.apart.data(), hidden_stride()};
  with_.pool.run_each(batch.rows, 8, [&](int row) {
    normalize(weights.apart.beside, beside.row(row), beside.row(row));
    with_.kernels.add(made.row(row), hidden_stride(), beside.row(row));
  });
}

void cpu_decoder::run_experts(const layer_weights& weights, float_rows normed) {
  const model_config& config = model_->config;
  const float_rows in{experts_.places.data(), hidden_stride()};
  const float_rows gate{experts_.gate.data(), experts_.gate_stride}, up{experts_.up.data(), experts_.gate_stride};
  prepare_places(weights, in, config.hidden,
                 [&](int place) { std::copy_n(normed.row(routes_.row_at(place)), hidden_stride(), in.row(place)); });
  experts_.jobs.clear();
  add_group_jobs(weights, &expert_weights::gate, &expert_biases::gate, in, gate);
  add_group_jobs(weights, &expert_weights::up, &expert_biases::up, in, up);
  matmul(with_, experts_.jobs);
  prepare_places(weights, up, config.ffn, [&](int place) {
    activate_gated(with_.kernels, config, gate.row(place), up.row(place), config.ffn, up.row(place));
  });
  experts_.jobs.clear();
  add_group_jobs(weights, &expert_weights::down, &expert_biases::down, up, in);  // what went in has been used
  matmul(with_, experts_.jobs);
}

template <class MakeRow>
void cpu_decoder::prepare_places(const layer_weights& weights, float_rows x, std::int64_t ins, MakeRow make_row) {
  const bool integers = ask_for_integers(weights);
  quantized_.begin_groups(routes_.places(), ins, routes_.tile());
  with_.pool.run_each(routes_.places(), routes_.tile().rows, [&](int place) {
    if (routes_.row_at(place) < 0) return;
    make_row(place);
    if (integers) quantized_.put(place, x.row(place));
  });
}

void cpu_decoder::add_group_jobs(const layer_weights& weights, matrix_view expert_weights::*of,
                                 const float* expert_biases::*bias, float_rows x, float_rows y) {
  for (const expert_routes::group& group : routes_.groups()) {
    const expert_weights& expert = weights.experts[to_size(group.expert)];
    experts_.jobs.push_back({.w = expert.*of,
                             .rows = group.rows,
                             .q = quantized_.group(group.first, group.rows),
                             .x = x.row(group.first),
                             .x_stride = x.stride,
                             .y = y.row(group.first),
                             .y_stride = y.stride,
                             .bias = expert.biases.*bias});
  }
}

void cpu_decoder::add_visits(float_rows hidden, int rows) {
  const float_rows made{experts_.places.data(), hidden_stride()};
  with_.pool.run_each(rows, 8, [&](int row) { routes_.add_visits(row, made, model_->config.hidden, hidden.row(row)); });
}

}  // namespace troupe
