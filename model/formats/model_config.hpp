#pragma once
#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/to_size.hpp"
#include "model/formats/file_layout.hpp"
#include "model/formats/layer_configs.hpp"
#include "model/formats/rope_config.hpp"
#include "model/formats/tensors/code_settings.hpp"

namespace troupe {

enum class norm_kind : std::uint8_t { rms, layer };
/// squared_relu: only where there is no gate. clamped_silu: gate sigmoid(activation_slope gate) (up + 1), with gate and
/// up held to activation_limit
enum class activation_kind : std::uint8_t { silu, gelu_tanh, clamped_silu, squared_relu };
enum class position_kind : std::uint8_t { rotary, learned };
/// How a layer looks back: at the keys and values of all positions, or at a state of one size that every row changes.
enum class mixer_kind : std::uint8_t { attention, delta, convolution };
/// How a layer turns its heads: as rope says, as local_rope says, or not at all.
enum class layer_rope : std::uint8_t { global, local, none };

/// What a model is, independent of the file it came from. Two models of one architecture differ in these values alone:
/// an architecture is data, and model/arch runs all of them with the same code.
struct model_config {
  std::string family;  ///< a name of `families` (hf_families.cpp)
  std::int64_t vocab_size = 0;
  std::int64_t hidden = 0;
  std::int64_t layers = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t ffn = 0;
  std::int64_t context = 0;

  norm_kind norm = norm_kind::rms;
  bool norm_bias = false;  ///< of layer norms
  float norm_eps = 1e-5f;
  activation_kind activation = activation_kind::silu;
  float activation_limit = 0, activation_slope = 0;  ///< of clamped_silu
  bool gated_mlp = true;                             ///< down(act(gate(x)) * up(x)); else down(act(up(x)))
  expert_config experts;
  bool input_norms = true;           ///< what attention and mlp read is normalized
  bool parallel = false;             ///< an mlp reads what attention reads, and has no norm of its own
  bool output_norms = false;         ///< what attention and mlp give is normalized before it is added
  float embedding_factor = 1.0f;     ///< of the embeddings as the first layer gets them, not of a tied head
  std::int64_t layer_embedding = 0;  ///< numbers of its token that a row brings to each layer; 0: none
  bool layer_factors = false;        ///< what leaves a layer is multiplied by a number of this layer
  double score_dim = 0;              ///< attention's scores are divided by the root of it; 0: of head_dim
  /// Scores and logits come no further than these from zero: cap * tanh(x / cap). 0: as they are.
  float score_cap = 0, logit_cap = 0;
  float logit_factor = 1.0f;  ///< of what the head gives, before the cap
  position_kind position = position_kind::rotary;
  std::int64_t rotary_dim = 0;  ///< how much of each head turns, from its beginning; 0: all of it
  rope_config rope, local_rope;
  std::vector<layer_rope> layer_ropes;  ///< per layer; empty: all global
  /// Queries are multiplied by 1 + query_growth * ln(1 + floor(position / rope.original_context)).
  double query_growth = 0;
  bool qkv_bias = false;
  bool out_bias = false;         ///< on the attention's output projection
  bool mlp_bias = false;         ///< of a mixture: on its experts and their router
  bool attention_sinks = false;  ///< each head has a score beside those of the positions, which draws weight to nothing
  bool qk_norm = false;          ///< an rms norm over each head of q and k
  bool joint_qk_norm = false;    ///< which is one over all heads of q, and one over those of k
  bool unit_values = false;      ///< and one without weights over each head of v
  wide_heads wide;
  latent_config latent;
  /// The last ones read the keys and values of the last layer before them that has the same rope.
  std::int64_t sharing_layers = 0;
  std::int64_t sharing_ffn = 0;  ///< of the mlp in these; 0: as in all
  bool attention_gate = false;   ///< q also makes a gate of each head, whose sigmoid is multiplied by what it mixes
  bool tied_embeddings = false;
  std::vector<std::int64_t> windows;  ///< per layer: positions a token sees (sliding window); 0 sees all; empty: all 0

  std::vector<mixer_kind> mixers;   ///< per layer; empty: all attention
  delta_config delta;               ///< of layers that mix so
  std::int64_t convolved_rows = 0;  ///< that layers of short convolutions see, with the newest one

  file_layout file;
  code_settings codes;  ///< of files whose weights another program quantized

  std::vector<std::int32_t> eos_tokens;  ///< as config.json or generation_config.json names them
  std::int32_t bos_token = -1;           ///< -1: none

  std::int64_t window_of(std::int64_t layer) const { return windows.empty() ? 0 : windows[to_size(layer)]; }
  layer_rope rope_of(std::int64_t layer) const {
    if (position != position_kind::rotary) return layer_rope::none;
    return layer_ropes.empty() ? layer_rope::global : layer_ropes[to_size(layer)];
  }
  mixer_kind mixer_of(std::int64_t layer) const {
    return mixers.empty() ? mixer_kind::attention : mixers[to_size(layer)];
  }
  /// It has the heads of layers with the global rope, which differ.
  bool is_wide(std::int64_t layer) const { return wide.dim > 0 && rope_of(layer) == layer_rope::global; }
  bool has_two_kinds_of_heads() const { return wide.dim > 0; }
  head_sizes usual_heads() const { return {head_dim, kv_heads}; }
  /// Those of layers with the global rope: the usual ones, where there is one kind.
  head_sizes global_heads() const {
    return has_two_kinds_of_heads() ? head_sizes{wide.dim, wide.kv_heads} : usual_heads();
  }
  std::int64_t head_dim_of(std::int64_t layer) const { return is_wide(layer) ? wide.dim : head_dim; }
  std::int64_t kv_heads_of(std::int64_t layer) const { return is_wide(layer) ? wide.kv_heads : kv_heads; }
  std::int64_t widest_head() const { return std::max(head_dim, wide.dim); }
  /// Of one row, in the layer that has most.
  std::int64_t widest_keys() const { return std::max(kv_heads * head_dim, wide.kv_heads * wide.dim); }
  bool shares_keys(std::int64_t layer) const { return sharing_layers > 0 && layer >= layers - sharing_layers; }
  bool is_latent() const { return latent.rank > 0; }
  bool has_values(std::int64_t layer) const {
    return !shares_keys(layer) && !is_latent() && !(wide.values_are_keys && is_wide(layer));
  }
  /// The layer whose keys and values this one reads: itself, if it does not share.
  std::int64_t keys_of(std::int64_t layer) const;
  /// Later ones read its keys and values.
  bool is_shared(std::int64_t layer) const;
  /// It keeps keys and values of its own.
  bool keeps_keys(std::int64_t layer) const { return mixer_of(layer) == mixer_kind::attention && !shares_keys(layer); }
  /// All layers run in one place: some read what others made, or what belongs to the rows' tokens.
  bool is_one_stage() const { return sharing_layers > 0 || layer_embedding > 0; }
  /// Heads differ by layer or share a short row, or layers read what others made: only processors compute that so far,
  /// and one rank whole.
  bool has_uncommon_heads() const { return has_two_kinds_of_heads() || is_one_stage() || is_latent(); }
  /// A sequence has a state beside its keys and values. It stands where the last row left it, and nowhere before.
  bool keeps_states() const {
    return std::any_of(mixers.begin(), mixers.end(), [](mixer_kind m) { return m != mixer_kind::attention; });
  }
  bool mixes_by(mixer_kind mixer) const { return std::find(mixers.begin(), mixers.end(), mixer) != mixers.end(); }
  /// Of a sequence's state in this layer; 0: it keeps none.
  std::int64_t state_floats(std::int64_t layer) const {
    switch (mixer_of(layer)) {
      case mixer_kind::attention:
        return 0;
      case mixer_kind::delta:
        return delta.state_floats();
      case mixer_kind::convolution:
        return (convolved_rows - 1) * hidden;
    }
    return 0;
  }
  /// Whether some layer has it.
  bool has_local_rope() const {
    return std::find(layer_ropes.begin(), layer_ropes.end(), layer_rope::local) != layer_ropes.end();
  }
  bool has_experts(std::int64_t layer) const {
    return experts.count > 0 && has_mlp(layer) &&
           (experts.dense_layers.empty() || !experts.dense_layers[to_size(layer)]);
  }
  /// Or experts.
  bool has_mlp(std::int64_t layer) const { return file.layers.empty() || file.layers[to_size(layer)].mlp >= 0; }
  /// Of the mlp that all tokens of a layer go through; 0: it has none.
  std::int64_t mlp_width(std::int64_t layer) const {
    if (!has_mlp(layer)) return 0;
    if (experts.count == 0) return sharing_ffn > 0 && shares_keys(layer) ? sharing_ffn : ffn;
    return has_experts(layer) ? experts.shared_ffn : experts.dense_ffn;
  }
  std::int64_t widest_mlp() const {
    return experts.count == 0 ? std::max(ffn, sharing_ffn) : std::max(experts.shared_ffn, experts.dense_ffn);
  }
  bool has_mlps_of_one_width() const { return experts.dense_layers.empty() && sharing_ffn == 0; }
  std::int64_t heads_per_kv(std::int64_t layer) const { return heads / kv_heads_of(layer); }
  bool is_geglu() const { return gated_mlp && activation == activation_kind::gelu_tanh; }
  bool norms_each_head() const { return qk_norm && !joint_qk_norm; }
  /// With joint_qk_norm all layers have the same.
  std::int64_t q_norm_size(std::int64_t layer) const { return (joint_qk_norm ? heads : 1) * head_dim_of(layer); }
  std::int64_t k_norm_size(std::int64_t layer) const {
    return (joint_qk_norm ? kv_heads_of(layer) : 1) * head_dim_of(layer);
  }
  /// How much of a head such layers turn.
  std::int64_t turned_dim(layer_rope by = layer_rope::global) const {
    if (rotary_dim > 0) return rotary_dim;
    return by == layer_rope::global && wide.dim > 0 ? wide.dim : head_dim;
  }
  std::int64_t state_bytes(std::int64_t layer) const {
    return state_floats(layer) * static_cast<std::int64_t>(sizeof(float));
  }
  /// Of a sequence's states in all layers.
  std::int64_t state_bytes() const;
  float score_divisor() const;
};

/// What config.has_uncommon_heads means, of this model.
std::string_view uncommon_heads(const model_config& config);

/// Sizes must be positive, within sane bounds and fit each other; the message names the field.
void check(const model_config& config, const std::string& where);

}  // namespace troupe
