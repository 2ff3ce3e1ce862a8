#include "model/arch/cuda/device_experts.hpp"

#include <algorithm>
#include <span>

#include "base/to_size.hpp"

namespace troupe {
namespace {

/// is(scheme) of any matrix of the layer's experts that reads a row of `hidden`, or of any matrix.
template <class Is>
bool any_inner(const layer_weights& weights, Is is) {
  const expert_weights& expert = weights.experts.front();
  return is(expert.gate.kind) || is(expert.up.kind);
}
template <class Is>
bool any_of_experts(const std::vector<layer_weights>& layers, Is is) {
  return std::any_of(layers.begin(), layers.end(), [&](const layer_weights& each) {
    return any_inner(each, is) || is(each.experts.front().down.kind);
  });
}
constexpr auto is_bf16 = [](scheme kind) { return kind == scheme::bf16; };
constexpr auto is_f32 = [](scheme kind) { return kind == scheme::f32; };

int places_of(const model_config& config, int rows) {
  return cuda::visit_memory::most_places(rows, static_cast<int>(config.experts.count),
                                         static_cast<int>(config.experts.taken));
}

}  // namespace

int device_experts::rows_together(const model_config& config, int most_rows) {
  constexpr std::int64_t most_bytes = std::int64_t{1} << 30, floats = 4, codes = 3;  // int8 and bf16
  const std::int64_t of_place = floats * (2 * padded_row(config.ffn) + padded_row(config.hidden)) +
                                codes * padded_row(std::max(config.ffn, config.hidden));
  int rows = most_rows;
  while (rows > 1 && places_of(config, rows) * of_place > most_bytes) rows = (rows + 1) / 2;
  return rows;
}

device_experts::device_experts(const model_config& config, const std::vector<layer_weights>& layers, int rows_together)
    : config_{config.hidden, config.ffn, config.experts.count, config.experts.whole_shares},
      rows_together_(rows_together),
      visits_(rows_together_, static_cast<int>(config.experts.count), static_cast<int>(config.experts.taken)) {
  const std::int64_t places = places_of(config, rows_together_);
  const auto take = [](std::int64_t rows, std::int64_t columns) {
    return cuda::device_buffer<float>(to_size(rows * padded_row(columns)));
  };
  scores_ = take(rows_together_, config.experts.count);
  gate_ = take(places, config.ffn);
  up_ = take(places, config.ffn);
  made_ = take(places, config.hidden);
  codes_ = cuda::coded_rows(places, std::max(config.hidden, config.ffn), any_of_experts(layers, is_integer),
                            any_of_experts(layers, is_bf16));
}

cuda::row_codes device_experts::codes_for(const layer_weights& weights, const cuda::coded_rows& codes) {
  return codes.view(any_inner(weights, is_integer), any_inner(weights, is_bf16));
}

void device_experts::mix(const cuda::stream& on, const layer_weights& weights, const mixed_rows& all) const {
  for (int first = 0; first < all.rows; first += rows_together_)
    mix_some(on, weights,
             {.rows = std::min(rows_together_, all.rows - first),
              .positions = all.positions + first,
              .normed = {all.normed.row(first), all.normed.stride},
              .codes = all.codes.from(first, config_.hidden),
              .hidden = {all.hidden.row(first), all.hidden.stride}});
}

void device_experts::mix_some(const cuda::stream& on, const layer_weights& weights, const mixed_rows& some) const {
  const float_rows scores = rows_of(scores_, config_.experts);
  const cuda::product router{.w = weights.router, .y = scores};
  cuda::matmul(on, std::span(&router, 1), {.rows = some.rows, .x = some.normed});
  const cuda::visit_tables visits = visits_.tables(some.rows);
  cuda::choose_experts(
      on, {.visits = visits, .scores = scores, .positions = some.positions, .whole_shares = config_.whole_shares});
  run(on, weights, visits, some);
  cuda::add_visits(
      on, {.visits = visits, .n = config_.hidden, .made = rows_of(made_, config_.hidden), .hidden = some.hidden});
}

/// What goes in may lie where `made` comes to lie: then it has been used.
void device_experts::run(const cuda::stream& on, const layer_weights& weights, const cuda::visit_tables& visits,
                         const mixed_rows& some) const {
  const expert_weights& first = weights.experts.front();
  const float_rows gate = rows_of(gate_, config_.ffn), up = rows_of(up_, config_.ffn),
                   made = rows_of(made_, config_.hidden);
  cuda::expert_inputs in{visits, some.normed, some.codes, visits.row_at};
  if (visits.bounds.tile_rows > cuda::few_visit_rows) {
    in = {visits, made, codes_for(weights, codes_), nullptr};
    cuda::gather_visits(on, {.visits = visits,
                             .n = config_.hidden,
                             .x = some.normed,
                             .codes = some.codes,
                             .to = any_inner(weights, is_f32) ? made : float_rows{},
                             .to_codes = in.codes});
  }
  const cuda::product inner[] = {{.w = first.gate, .y = gate}, {.w = first.up, .y = up}};
  cuda::matmul_experts(on, inner, in);
  const cuda::row_codes codes = codes_.view(first.down.kind);
  cuda::swiglu(on, {.rows = visits.bounds.places(),
                    .n = config_.ffn,
                    .gate = gate,
                    .x = up,
                    .out = is_f32(first.down.kind) ? up : float_rows{},
                    .codes = codes,
                    .wanted = visits.row_at});
  const cuda::product down{.w = first.down, .y = made};
  cuda::matmul_experts(on, std::span(&down, 1), {visits, up, codes, nullptr});
}

}  // namespace troupe
