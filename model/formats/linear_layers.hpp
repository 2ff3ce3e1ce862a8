#pragma once
#include <algorithm>
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

/// One T for each of them.
template <class T>
struct linear_layers {
  T q_down;  // where config.latent.query_rank
  T q, k, v, o;
  T delta_qkv, delta_z, delta_b, delta_a, delta_out;
  T convolution_in, convolution_out;
  T gate, up, down;  // gate only in gated models
  T token_gate, token_out;

  /// A kind's member, and its name, which follows "model.layers.N.".
  struct entry {
    linear_kind kind;
    std::string_view name;
    T linear_layers::*member;
  };
  static constexpr std::array<entry, linear_kinds> entries = {
      {{linear_kind::q_down, "self_attn.q_down_proj", &linear_layers::q_down},
       {linear_kind::q, "self_attn.q_proj", &linear_layers::q},
       {linear_kind::k, "self_attn.k_proj", &linear_layers::k},
       {linear_kind::v, "self_attn.v_proj", &linear_layers::v},
       {linear_kind::o, "self_attn.o_proj", &linear_layers::o},
       {linear_kind::delta_qkv, "linear_attn.in_proj_qkv", &linear_layers::delta_qkv},
       {linear_kind::delta_z, "linear_attn.in_proj_z", &linear_layers::delta_z},
       {linear_kind::delta_b, "linear_attn.in_proj_b", &linear_layers::delta_b},
       {linear_kind::delta_a, "linear_attn.in_proj_a", &linear_layers::delta_a},
       {linear_kind::delta_out, "linear_attn.out_proj", &linear_layers::delta_out},
       {linear_kind::convolution_in, "conv.in_proj", &linear_layers::convolution_in},
       {linear_kind::convolution_out, "conv.out_proj", &linear_layers::convolution_out},
       {linear_kind::gate, "mlp.gate_proj", &linear_layers::gate},
       {linear_kind::up, "mlp.up_proj", &linear_layers::up},
       {linear_kind::down, "mlp.down_proj", &linear_layers::down},
       {linear_kind::token_gate, "per_layer_input_gate", &linear_layers::token_gate},
       {linear_kind::token_out, "per_layer_projection", &linear_layers::token_out}}};

  constexpr T& operator[](linear_kind kind) { return this->*entries[to_size(kind)].member; }
  constexpr const T& operator[](linear_kind kind) const { return this->*entries[to_size(kind)].member; }
};

namespace detail {

/// Each kind is the entry of its number, and has a member of its own.
constexpr bool has_each_linear_once() {
  linear_layers<linear_kind> layer{};
  for (const linear_kind kind : every_linear) layer[kind] = kind;
  return std::all_of(every_linear.begin(), every_linear.end(), [&](linear_kind kind) {
    return linear_layers<linear_kind>::entries[to_size(kind)].kind == kind && layer[kind] == kind;
  });
}
static_assert(has_each_linear_once());
static_assert(sizeof(linear_layers<char>) == linear_kinds, "members, kinds and entries are equally many");

}  // namespace detail

constexpr std::string_view name_of(linear_kind kind) {
  return linear_layers<char>::entries[to_size(kind)].name;
}

constexpr std::optional<linear_kind> linear_from_name(std::string_view name) {
  for (const linear_kind kind : every_linear)
    if (name_of(kind) == name) return kind;
  return std::nullopt;
}

/// "model.layers.3.self_attn.q_proj"
std::string linear_name(std::int64_t layer, linear_kind kind);

/// Those that each token goes through in some layer: none of experts. Where files have several in one tensor, in the
/// order they have them.
std::vector<linear_kind> linear_kinds_of(const model_config& config, std::int64_t layer);
/// The size of such a layer's weight, [out, in].
std::pair<std::int64_t, std::int64_t> linear_shape(const model_config& config, std::int64_t layer, linear_kind kind);

}  // namespace troupe
