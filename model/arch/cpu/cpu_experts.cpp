#include "model/arch/cpu/cpu_experts.hpp"

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

cpu_experts::cpu_experts(cpu_products& products, const decoder::options& chosen)
    : products_(products), config_(products.config()), routes_(config_, products.kernels()) {
  const int rows = std::min(chosen.max_rows, expert_routes::rows_together);
  const std::int64_t places = expert_routes::most_places(config_, rows);
  scores_ = row_memory(rows, padded_outs(config_.experts.count));
  places_ = row_memory(places, products.hidden_stride());
  if (config_.gated_mlp) gate_ = row_memory(places, padded_row(config_.ffn));
  up_ = row_memory(places, padded_row(config_.ffn));
  if (config_.experts.apart) apart_ = row_memory(chosen.max_rows, products.hidden_stride());
  if (config_.experts.shared_gate) shared_shares_ = row_memory(chosen.max_rows, outs_per_block);
}

void cpu_experts::mix(const layer_pass& at) {
  constexpr int at_once = expert_routes::rows_together;
  const layer_weights& weights = at.weights;
  const float_rows normed = products_.normed();
  products_.pool().run_each(
      at.batch.rows, 8, [&](int row) { products_.normalize(weights.mlp_norm, at.hidden.row(row), normed.row(row)); });
  for (int first = 0; first < at.batch.rows; first += at_once) {
    const float_rows some = normed.from(first);
    const int rows = std::min(at_once, at.batch.rows - first);
    routes_.choose(products_.with(), {weights.router, weights.router_bias, weights.choice_bias}, some, rows, scores_);
    run(weights, some);
    add_visits(at.hidden.from(first), rows);
  }
  if (weights.shared_gate.weights)
    weigh_shared(products_.with(), weights.shared_gate, normed, at.batch.rows, shared_shares_);
}

void cpu_experts::mix_apart(const layer_pass& at) {
  constexpr int at_once = expert_routes::rows_together;
  const layer_weights& weights = at.weights;
  const float_rows normed = products_.normed();
  for (int first = 0; first < at.batch.rows; first += at_once) {
    const float_rows in = at.hidden.from(first), made = apart_.from(first);
    const int rows = std::min(at_once, at.batch.rows - first);
    const auto normalize_rows = [&](const norm_weights& norm, const_float_rows from, float_rows to) {
      products_.pool().run_each(rows, 8, [&](int row) { products_.normalize(norm, from.row(row), to.row(row)); });
    };
    normalize_rows(weights.apart.router, in, normed);
    routes_.choose(products_.with(), {.w = weights.router, .factors = weights.apart.share_factors}, normed, rows,
                   scores_);
    normalize_rows(weights.apart.experts, in, normed);
    run(weights, normed);
    std::fill_n(made.data, rows * made.stride, 0.0f);
    add_visits(made, rows);
    normalize_rows(weights.apart.experts_output, made, made);
  }
}

void cpu_experts::join(const layer_pass& at) {
  const float_rows beside = products_.normed();
  products_.pool().run_each(at.batch.rows, 8, [&](int row) {
    products_.normalize(at.weights.apart.beside, beside.row(row), beside.row(row));
    products_.kernels().add(apart_.row(row), apart_.stride(), beside.row(row));
  });
}

void cpu_experts::run(const layer_weights& weights, float_rows normed) {
  prepare_places(weights, places_, config_.hidden,
                 [&](int place) { std::copy_n(normed.row(routes_.row_at(place)), normed.stride, places_.row(place)); });
  jobs_.clear();
  if (config_.gated_mlp) add_group_jobs(weights, &expert_weights::gate, &expert_biases::gate, places_, gate_);
  add_group_jobs(weights, &expert_weights::up, &expert_biases::up, places_, up_);
  matmul(products_.with(), jobs_);
  prepare_places(weights, up_, config_.ffn, [&](int place) {
    float* const up = up_.row(place);
    if (config_.gated_mlp)
      activate_gated(products_.kernels(), config_, gate_.row(place), up, config_.ffn, up);
    else
      activate_ungated(products_.kernels(), config_, up, config_.ffn, up);
  });
  jobs_.clear();
  add_group_jobs(weights, &expert_weights::down, &expert_biases::down, up_, places_);  // what went in has been used
  matmul(products_.with(), jobs_);
}

template <class MakeRow>
void cpu_experts::prepare_places(const layer_weights& weights, float_rows x, std::int64_t ins, MakeRow make_row) {
  const bool integers = ask_for_integers(weights);
  products_.quantized().begin_groups(routes_.places(), ins, routes_.tile());
  products_.pool().run_each(routes_.places(), routes_.tile().rows, [&](int place) {
    if (routes_.row_at(place) < 0) return;
    make_row(place);
    if (integers) products_.quantized().put(place, x.row(place));
  });
}

void cpu_experts::add_group_jobs(const layer_weights& weights, matrix_view expert_weights::*of,
                                 const float* expert_biases::*bias, float_rows x, float_rows y) {
  for (const expert_routes::group& group : routes_.groups()) {
    const expert_weights& expert = weights.experts[to_size(group.expert)];
    jobs_.push_back({.w = expert.*of,
                     .rows = group.rows,
                     .q = products_.quantized().group(group.first, group.rows),
                     .x = x.row(group.first),
                     .x_stride = x.stride,
                     .y = y.row(group.first),
                     .y_stride = y.stride,
                     .bias = expert.biases.*bias});
  }
}

void cpu_experts::add_visits(float_rows hidden, int rows) {
  products_.pool().run_each(rows, 8,
                            [&](int row) { routes_.add_visits(row, places_, config_.hidden, hidden.row(row)); });
}

}  // namespace troupe
