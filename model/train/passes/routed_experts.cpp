#include "model/train/passes/routed_experts.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/to_size.hpp"
#include "model/arch/row_steps.hpp"
#include "model/train/passes/row_steps_back.hpp"

namespace troupe {

routed_experts::strides::strides(const model_config& config)
    : hidden(train_stride(config.hidden)), ffn(train_stride(config.ffn)), score(padded_outs(config.experts.count)) {}

std::int64_t routed_experts::rows_at_once(std::int64_t most_rows) {
  return std::min<std::int64_t>(most_rows, expert_routes::rows_together);
}

std::int64_t routed_experts::bytes(const model_config& config, std::int64_t most_rows) {
  const strides by(config);
  const std::int64_t rows = rows_at_once(most_rows), places = expert_routes::most_places(config, rows);
  const std::int64_t inner = config.gated_mlp ? 4 : 3;
  return (places * (by.hidden + inner * by.ffn) + rows * 2 * by.score) * static_cast<std::int64_t>(sizeof(float));
}

routed_experts::routed_experts(const model_config& config, std::int64_t most_rows, const compute& with, products& body,
                               const std::function<void()>& between)
    : config_(config),
      with_(with),
      kernels_(train_kernels_like(with.kernels)),
      body_(body),
      between_(between),
      rows_at_once_(rows_at_once(most_rows)),
      routes_(config, with.kernels) {
  const strides by(config);
  const std::int64_t places = expert_routes::most_places(config, rows_at_once_);
  for (row_memory* rows : {&scores_, &score_gradients_}) *rows = row_memory(rows_at_once_, by.score);
  in_ = row_memory(places, by.hidden);
  for (row_memory* rows : {&up_, &active_, &active_gradient_}) *rows = row_memory(places, by.ffn);
  if (config.gated_mlp) gate_ = row_memory(places, by.ffn);
}

template <class Work>
void routed_experts::for_groups(Work work) {
  for (const expert_routes::group& group : routes_.groups()) {
    if (between_) between_();
    work(group.first, group.rows, to_size(group.expert));
  }
}

template <class Work>
void routed_experts::for_rows(std::int64_t rows, Work work) {
  with_.pool.run_each(rows, 8, work);
}

void routed_experts::forward(const trained_layer& layer, const read_rows<const_float_rows>& input, std::int64_t rows,
                             float_rows y) {
  for (std::int64_t first = 0; first < rows; first += rows_at_once_) {
    const std::int64_t count = std::min(rows_at_once_, rows - first);
    visit(layer, input.from(first), count);
    for_groups([&](int place, int visitors, std::size_t expert) {
      const trained_expert& by = layer.experts[expert];
      const products::output down{&by.down, by.biases.down, in_.from(place)};
      body_.forward(active_.from(place), visitors, {&down, 1});
    });
    add_visits(count, y.from(first));
  }
}

void routed_experts::backward(const trained_layer& layer, const read_rows<const_float_rows>& read, std::int64_t rows,
                              const_float_rows dy, const read_rows<float_rows>& gradient) {
  for (std::int64_t first = 0; first < rows; first += rows_at_once_) {
    const std::int64_t count = std::min(rows_at_once_, rows - first);
    const read_rows<float_rows> to = gradient.from(first);
    visit(layer, read.from(first), count);
    gather(dy.from(first));
    for_groups([&](int place, int visitors, std::size_t expert) {
      body_.backward(in_.from(place), visitors, layer.experts[expert].down, active_gradient_.from(place), into::set);
    });
    for_rows(count, [&](int row) { row_back(layer, row); });
    for_groups([&](int place, int visitors, std::size_t expert) {
      const float_rows input = in_.from(place);
      const trained_expert& by = layer.experts[expert];
      if (config_.gated_mlp) body_.backward(gate_.from(place), visitors, by.gate, input, into::set);
      body_.backward(up_.from(place), visitors, by.up, input, config_.gated_mlp ? into::add : into::set);
    });
    body_.backward(score_gradients_, count, layer.router, to.routed, into::set);
    for_rows(count, [&](int row) {
      if (!to.is_one()) std::fill_n(to.x.row(row), in_.stride(), 0.0f);
      for (const expert_routes::visit& visit : routes_.visits_of(row))
        with_.kernels.add(in_.row(visit.place), config_.hidden, to.x.row(row));
    });
  }
}

void routed_experts::visit(const trained_layer& layer, const read_rows<const_float_rows>& read, std::int64_t rows) {
  const expert_routes::router router{layer.router.packed, layer.router_bias, layer.choice_bias,
                                     layer.apart.share_factors};
  routes_.choose(with_, router, read.routed, static_cast<int>(rows), scores_);
  gather(read.x);
  for_groups([&](int place, int visitors, std::size_t expert) {
    const trained_expert& by = layer.experts[expert];
    const products::output both[] = {{&by.up, by.biases.up, up_.from(place)},
                                     {&by.gate, by.biases.gate, gate_.from(place)}};  // of gated models
    body_.forward(in_.from(place), visitors, std::span(both).first(config_.gated_mlp ? 2 : 1));
  });
  const std::int64_t width = rounded_up(config_.ffn, 16);
  for_rows(routes_.places(), [&](int place) {
    if (config_.gated_mlp)
      activate_gated(with_.kernels, config_, gate_.row(place), up_.row(place), width, active_.row(place));
    else
      activate_ungated(with_.kernels, config_, up_.row(place), width, active_.row(place));
  });
}

/// Each place gets its row; those that nobody takes keep what they have, which nobody reads.
void routed_experts::gather(const_float_rows from) {
  for_rows(routes_.places(), [&](int place) {
    if (const int row = routes_.row_at(place); row >= 0) std::copy_n(from.row(row), in_.stride(), in_.row(place));
  });
}

void routed_experts::add_visits(std::int64_t rows, float_rows y) {
  for_rows(rows, [&](int row) { routes_.add_visits(row, in_, config_.hidden, y.row(row)); });
}

/// Of a row's visits: active_gradient_, which still lacks the share, becomes the gradients of gate and up. That of the
/// share is dy expert(x), which is active_gradient_ active since both are dy down(active); with a bias it is that much
/// more of dy, which is still where it was gathered.
void routed_experts::row_back(const trained_layer& layer, int row) {
  const std::int64_t width = rounded_up(config_.ffn, 16);
  float* share_gradients = score_gradients_.row(row);
  std::fill_n(share_gradients, scores_.stride(), 0.0f);
  for (const expert_routes::visit& visit : routes_.visits_of(row)) {
    float* gradient = active_gradient_.row(visit.place);
    double share_gradient = kernels_.dot(gradient, active_.row(visit.place), config_.ffn);
    if (const float* bias = layer.experts[to_size(visit.expert)].biases.down)
      share_gradient += kernels_.dot(in_.row(visit.place), bias, config_.hidden);
    share_gradients[visit.expert] = static_cast<float>(share_gradient);
    std::transform(gradient, gradient + width, gradient, [&](float g) { return g * visit.share; });
    if (config_.gated_mlp)
      activate_gated_back(kernels_, config_, gradient, width, gate_.row(visit.place), up_.row(visit.place));
    else
      activate_ungated_back(kernels_, config_, gradient, width, up_.row(visit.place));
  }
  shares_back(layer, row, share_gradients);
}

/// The gradients of a row's shares become those of its scores. The scores become what softmax made of them: over the
/// experts taken, or over all.
void routed_experts::shares_back(const trained_layer& layer, int row, float* gradients) {
  if (config_.experts.sigmoid_shares) return sigmoids_back(row, gradients);
  float* shares = scores_.row(row);
  const auto factor_of = [&](std::int64_t expert) {
    return layer.apart.share_factors ? layer.apart.share_factors[expert] : config_.experts.share_factor;
  };
  for (const expert_routes::visit& visit : routes_.visits_of(row)) gradients[visit.expert] *= factor_of(visit.expert);
  if (config_.experts.whole_shares) {
    std::fill_n(shares, scores_.stride(), 0.0f);
    for (const expert_routes::visit& visit : routes_.visits_of(row))
      if (const float factor = factor_of(visit.expert); factor != 0) shares[visit.expert] = visit.share / factor;
  } else {
    kernels_.softmax(shares, 0, 0, config_.experts.count, scores_.stride(), 1.0f, -INFINITY);
  }
  kernels_.softmax_back(shares, gradients, 0, scores_.stride(), 1.0f);
}

/// Where they are made of sigmoids s, a share's slope is that over s less what all shares of a row lose to it, times
/// s (1 - s).
void routed_experts::sigmoids_back(int row, float* gradients) {
  float* sigmoid = scores_.row(row);
  std::vector<float> raw(sigmoid, sigmoid + scores_.stride());
  sigmoids(with_.kernels, raw.data(), scores_.stride(), sigmoid);
  float lost = 0;
  if (config_.experts.whole_shares)
    for (const expert_routes::visit& visit : routes_.visits_of(row))
      lost += gradients[visit.expert] * visit.share / config_.experts.share_factor;
  for (const expert_routes::visit& visit : routes_.visits_of(row))
    gradients[visit.expert] = visit.share * (gradients[visit.expert] - lost) * (1 - sigmoid[visit.expert]);
}

}  // namespace troupe
