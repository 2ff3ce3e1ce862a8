#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/to_size.hpp"
#include "model/formats/model_config.hpp"

namespace troupe {

/// The linear layers of a transformer layer, in the order they run: q_down to o where it attends, those of delta or of
/// a convolution where it keeps a state, and at last those that give it what a token brings to the layer. Of latent
/// attention q_down makes what q reads, and k the row that is kept. Of a state space delta_qkv makes v, k and q, and
/// delta_a what a head decays and learns by; it has no delta_b.
enum class linear_kind : std::uint8_t {
  q_down,
  q,
  k,
  v,
  o,
  delta_qkv,
  delta_z,
  delta_b,
  delta_a,
  delta_out,
  convolution_in,
  convolution_out,
  gate,
  up,
  down,
  token_gate,
  token_out
};
constexpr std::size_t linear_kinds = to_size(linear_kind::token_out) + 1;
constexpr auto every_linear = [] {
  std::array<linear_kind, linear_kinds> all{};
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<linear_kind>(i);
  return all;
}();

constexpr bool is_mlp(linear_kind kind) {
  return kind >= linear_kind::gate && kind <= linear_kind::down;
}
constexpr bool is_of_token(linear_kind kind) {
  return kind >= linear_kind::token_gate;
}
constexpr bool is_delta(linear_kind kind) {
  return kind >= linear_kind::delta_qkv && kind <= linear_kind::delta_out;
}
constexpr bool is_convolution(linear_kind kind) {
  return kind == linear_kind::convolution_in || kind == linear_kind::convolution_out;
}

/// Our name, which follows "model.layers.N.".
constexpr std::string_view name_of(linear_kind kind) {
  constexpr std::array<std::string_view, linear_kinds> names = {
      "self_attn.q_down_proj", "self_attn.q_proj",      "self_attn.k_proj",
      "self_attn.v_proj",      "self_attn.o_proj",      "linear_attn.in_proj_qkv",
      "linear_attn.in_proj_z", "linear_attn.in_proj_b", "linear_attn.in_proj_a",
      "linear_attn.out_proj",  "conv.in_proj",          "conv.out_proj",
      "mlp.gate_proj",         "mlp.up_proj",           "mlp.down_proj",
      "per_layer_input_gate",  "per_layer_projection"};
  return names[to_size(kind)];
}

constexpr std::optional<linear_kind> linear_from_name(std::string_view name) {
  for (const linear_kind kind : every_linear)
    if (name_of(kind) == name) return kind;
  return std::nullopt;
}

/// "model.layers.3.self_attn.q_proj"
std::string linear_name(std::int64_t layer, linear_kind kind);

/// One T for each of them.
template <class T>
struct linear_layers {
  T q_down;  // where config.latent.query_rank
  T q, k, v, o;
  T delta_qkv, delta_z, delta_b, delta_a, delta_out;
  T convolution_in, convolution_out;
  T gate, up, down;  // gate only in gated models
  T token_gate, token_out;

  T& operator[](linear_kind kind) { return in(*this, kind); }
  const T& operator[](linear_kind kind) const { return in(*this, kind); }

 private:
  template <class Layers>
  static auto& in(Layers& of, linear_kind kind) {
    return *std::array{&of.q_down,
                       &of.q,
                       &of.k,
                       &of.v,
                       &of.o,
                       &of.delta_qkv,
                       &of.delta_z,
                       &of.delta_b,
                       &of.delta_a,
                       &of.delta_out,
                       &of.convolution_in,
                       &of.convolution_out,
                       &of.gate,
                       &of.up,
                       &of.down,
                       &of.token_gate,
                       &of.token_out}[to_size(kind)];
  }
};

/// Those that each token goes through in some layer: none of experts. Where files have several in one tensor, in the
/// order they have them.
std::vector<linear_kind> linear_kinds_of(const model_config& config, std::int64_t layer);
/// The size of such a layer's weight, [out, in].
std::pair<std::int64_t, std::int64_t> linear_shape(const model_config& config, std::int64_t layer, linear_kind kind);

}  // namespace troupe
