#include "model/train/passes/cpu_train_mlp.hpp"

#include <algorithm>

#include "model/arch/row_steps.hpp"
#include "model/train/passes/row_steps_back.hpp"

namespace troupe {

using enum linear_kind;

cpu_train_mlp::cpu_train_mlp(cpu_train_rows& rows) : rows_(rows), config_(rows.config()), scratch_(rows.scratch()) {
  const train_pass::options& chosen = rows.options();
  if (config_.experts.count > 0) experts_.emplace(config_, chosen.most_rows, rows.with(), rows.body(), chosen.between);
}

void cpu_train_mlp::forward(const layer_rows& at, const_float_rows in, float_rows out) {
  const trained_layer& weights = at.weights;
  if (config_.experts.apart) return run_apart(at, in, out);
  if (weights.experts.empty() && weights.up.w.outs == 0) {
    if (out.data) rows_.copy(in, out);
    return;
  }
  const float_rows normed = scratch_.normed;  // where both are beside each other, still of attention
  if (!config_.parallel) rows_.normalize(weights.mlp_norm, in, normed);
  if (weights.experts.empty()) {
    run(at, normed);
    return rows_.add_output(at, down, scratch_.active, in, out);
  }
  if (out.data) rows_.copy(in, out);
  if (out.data) experts_->forward(weights, {normed, normed}, rows_.count(), out);
  if (weights.up.w.outs == 0) return;
  run(at, normed);
  rows_.apply(at, scratch_.active, into::add, {{down, out}});
}

void cpu_train_mlp::run(const layer_rows& at, const_float_rows normed) {
  rows_.apply(at, normed, into::set, {{gate, at.a.gate}, {up, at.a.up}});
  activate(at);
  share_active(at, normed);
}

void cpu_train_mlp::run_apart(const layer_rows& at, const_float_rows in, float_rows out) {
  const trained_layer& weights = at.weights;
  const float_rows normed = scratch_.normed, routed = scratch_.routed, chosen = at.a.chosen;
  rows_.normalize(weights.mlp_norm, in, normed);
  run(at, normed);
  rows_.apply(at, scratch_.active, into::set, {{down, at.a.beside}});
  rows_.normalize(weights.apart.experts, in, normed);
  rows_.normalize(weights.apart.router, in, routed);
  rows_.clear(chosen);
  experts_->forward(weights, {normed, routed}, rows_.count(), chosen);
  rows_.normalize(weights.apart.experts_output, chosen, normed);
  rows_.add_normalized(weights.apart.beside, normed, at.a.beside, at.a.fed);
  if (out.data) rows_.add_normalized(weights.mlp_output_norm, in, at.a.fed, out);
}

void cpu_train_mlp::backward(const layer_rows& at) {
  const trained_layer& weights = at.weights;
  if (config_.experts.apart) return apart_back(at);
  if (!weights.experts.empty()) return mixture_back(at);
  if (weights.up.w.outs == 0) return;
  const bool parallel = config_.parallel;
  const const_float_rows in = parallel ? at.in : rows_.middle_of(at.a);
  down_back(at, rows_.output_gradient(weights.mlp_output_norm, at.a.fed));  // which may lie in normed
  rows_.normalize(parallel ? weights.attention_norm : weights.mlp_norm, in, scratch_.normed);
  rows_.apply_back(at, scratch_.normed, {{gate, at.a.gate}, {up, at.a.up}},
                   parallel ? gradient_target{scratch_.mlp_input_gradient} : rows_.input_gradient());
  if (config_.input_norms && !parallel) rows_.normalize_back(weights.mlp_norm, in, rows_.inner(), scratch_.gradient);
}

void cpu_train_mlp::join_waiting() const {
  if (!config_.parallel) return;
  const float_rows waiting = scratch_.mlp_input_gradient, inner = rows_.inner();
  rows_.for_each([&](std::int64_t r) { rows_.kernels().add(waiting.row(r), config_.hidden, inner.row(r)); });
}

void cpu_train_mlp::down_back(const layer_rows& at, const_float_rows given) {
  activate(at);
  share_active(at, scratch_.normed);
  rows_.apply_back(at, scratch_.active, {{down, given}}, {scratch_.dactive});
  share_back(at, rows_.inner());
  activate_back(at);
}

void cpu_train_mlp::mixture_back(const layer_rows& at) {
  const trained_layer& weights = at.weights;
  const float_rows normed = scratch_.normed, inner = rows_.inner(), middle = rows_.middle_of(at.a);
  rows_.normalize(weights.mlp_norm, middle, normed);
  experts_->backward(weights, {normed, normed}, rows_.count(), scratch_.gradient, {inner, inner});
  if (weights.up.w.outs > 0) {
    down_back(at, scratch_.gradient);
    rows_.apply_back(at, normed, {{gate, at.a.gate}, {up, at.a.up}}, {inner, into::add});
  }
  rows_.normalize_back(weights.mlp_norm, middle, inner, scratch_.gradient);
}

void cpu_train_mlp::apart_back(const layer_rows& at) {
  const trained_layer& weights = at.weights;
  const float_rows normed = scratch_.normed, routed = scratch_.routed, middle = rows_.middle_of(at.a);
  const float_rows through = scratch_.finished, given = scratch_.given, gradient = scratch_.gradient;
  const float_rows inner = rows_.inner();
  const auto go_back = [&](const trained_norm& norm, const row_memory& made) {
    rows_.clear(through);
    rows_.normalize_back(norm, made, given, through);
  };
  rows_.copy(rows_.output_gradient(weights.mlp_output_norm, at.a.fed), given);
  go_back(weights.apart.experts_output, at.a.chosen);
  rows_.normalize(weights.apart.experts, middle, normed);
  rows_.normalize(weights.apart.router, middle, routed);
  experts_->backward(weights, {normed, routed}, rows_.count(), through, {inner, routed});
  rows_.normalize_back(weights.apart.experts, middle, inner, gradient);
  rows_.normalize_back(weights.apart.router, middle, routed, gradient);
  go_back(weights.apart.beside, at.a.beside);
  down_back(at, through);
  rows_.normalize(weights.mlp_norm, middle, normed);
  rows_.apply_back(at, normed, {{gate, at.a.gate}, {up, at.a.up}}, {inner});
  rows_.normalize_back(weights.mlp_norm, middle, inner, gradient);
}

/// scratch().active from gate and up.
void cpu_train_mlp::activate(const layer_rows& at) const {
  const std::int64_t width = rounded_up(at.weights.up.w.outs, 16);
  rows_.for_each([&](std::int64_t r) {
    float* const active = scratch_.active.row(r);
    if (config_.gated_mlp)
      activate_gated(rows_.kernels(), config_, at.a.gate.row(r), at.a.up.row(r), width, active);
    else
      activate_ungated(rows_.kernels(), config_, at.a.up.row(r), width, active);
    if (!config_.has_mlps_of_one_width()) end_row(active, width);
  });
}

/// Gate and up become their own gradients.
void cpu_train_mlp::activate_back(const layer_rows& at) const {
  const std::int64_t width = rounded_up(at.weights.up.w.outs, 16);
  const train_kernel_table& kernels = rows_.train_kernels();
  rows_.for_each([&](std::int64_t r) {
    const float* gradient = scratch_.dactive.row(r);
    if (config_.gated_mlp)
      activate_gated_back(kernels, config_, gradient, width, at.a.gate.row(r), at.a.up.row(r));
    else
      activate_ungated_back(kernels, config_, gradient, width, at.a.up.row(r));
  });
}

/// By the product that serving makes.
void cpu_train_mlp::share_active(const layer_rows& at, const_float_rows x) const {
  if (at.weights.shared_gate.outs == 0) return;
  weigh_shared(rows_.with(), at.weights.shared_gate.packed, x, rows_.count(), scratch_.shares);
  rows_.for_each([&](std::int64_t r) {
    rows_.kernels().multiply(scratch_.active.row(r), at.weights.up.w.outs, *scratch_.shares.row(r));
  });
}

void cpu_train_mlp::share_back(const layer_rows& at, float_rows dx) {
  if (at.weights.shared_gate.outs == 0) return;
  const float_rows dshares = scratch_.dshares;
  const std::int64_t width = at.weights.up.w.outs;
  rows_.for_each([&](std::int64_t r) {
    const float share = *scratch_.shares.row(r);
    float* const gradient = scratch_.dactive.row(r);
    // active has the share in it already: share' is share (1 - share)
    const double of_share = rows_.train_kernels().dot(gradient, scratch_.active.row(r), width);
    std::fill_n(dshares.row(r), dshares.stride, 0.0f);
    *dshares.row(r) = static_cast<float>(of_share) * (1 - share);
    rows_.kernels().multiply(gradient, width, share);
  });
  rows_.body().backward(dshares, rows_.count(), at.weights.shared_gate, dx, into::add);
}

}  // namespace troupe
