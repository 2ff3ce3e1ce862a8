#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/logarithm.hpp"
#include "base/to_size.hpp"
#include "model/formats/tensors/code_settings.hpp"

namespace troupe {

enum class norm_kind : std::uint8_t { rms, layer };
/// squared_relu: only where there is no gate. clamped_silu: gate sigmoid(activation_slope gate) (up + 1), with gate and
/// up held to activation_limit
enum class activation_kind : std::uint8_t { silu, gelu_tanh, clamped_silu, squared_relu };
enum class position_kind : std::uint8_t { rotary, learned };
enum class rope_scaling : std::uint8_t { none, linear, llama3, yarn, longrope };
/// How a layer looks back: at the keys and values of all positions, or at a state of one size that every row changes.
enum class mixer_kind : std::uint8_t { attention, delta, convolution };
/// How a layer turns its heads: as rope says, as local_rope says, or not at all.
enum class layer_rope : std::uint8_t { global, local, none };

/// Pairs that turn more than beta_fast times within the original context keep their frequency, those that turn less
/// than beta_slow times are slowed by the factor, those between are blended.
struct yarn_config {
  double beta_fast = 32.0;
  double beta_slow = 1.0;
  bool truncate = true;  ///< the blend begins and ends at whole pairs
  /// Cosines and sines are multiplied by attention_factor * stretch(mscale) / stretch(mscale_all_dim), where stretch(m)
  /// is 1 + 0.1 m ln(factor).
  double attention_factor = 1.0;
  double mscale = 1.0;
  double mscale_all_dim = 0.0;
  double score_stretch =
      0.0;  ///< the scores of latent attention are multiplied by the square of stretch(score_stretch)
};

struct rope_config {
  double theta = 10000.0;
  rope_scaling scaling = rope_scaling::none;
  double factor = 1.0;
  double low_freq_factor = 1.0;  // llama3 only, as the next
  double high_freq_factor = 4.0;
  std::int64_t original_context = 8192;  // llama3, yarn and longrope
  yarn_config yarn;
  /// [rotary_dim / 2]: divides the frequency of each pair, as GGUF's rope_freqs.weight gives it; empty: none.
  std::vector<float> frequency_divisors;
  std::vector<float> short_divisors;  ///< longrope: in their place where the context is no longer than the original
  /// longrope: cosines and sines are multiplied by it; 0: by sqrt(1 + ln(factor) / ln(original_context))
  double length = 0.0;
};

/// Rows that a convolution may see, with the newest one.
constexpr std::int64_t longest_convolution = 16;

/// A layer whose heads each keep a matrix of what they have read, behind a short convolution. By the gated delta rule
/// what a matrix says of a key is corrected; a state space (Mamba-2) adds to it, whatever it said.
struct delta_config {
  std::int64_t key_heads = 0, value_heads = 0;  ///< each key head serves as many value heads as its share is
  std::int64_t key_dim = 0, value_dim = 0;      ///< of a head: multiples of 16
  std::int64_t kernel = 0;                      ///< rows that the convolution sees, with the newest one
  bool in_turn = false;    ///< value heads take the key heads in turn; else the first ones share the first key head
  bool has_rates = false;  ///< the weights are minus the rates of decay, as GGUF has them; else their logarithms
  float norm_eps = 1e-6f;  ///< of the norm of what states answer
  /// A state space: keys and queries are of any length, a head learns by how it decays and has a share of its values
  /// beside what the state answers, and z weighs that before it is normalized, by all heads of a key head.
  bool is_state_space = false;
  bool convolution_bias = false;

  std::int64_t keys() const { return key_heads * key_dim; }
  std::int64_t values() const { return value_heads * value_dim; }
  /// What the convolution reads, and a state keeps of each row before: q, k and v; of a state space v, k and q.
  std::int64_t channels() const { return 2 * keys() + values(); }
  std::int64_t first_query() const { return is_state_space ? values() + keys() : 0; }
  std::int64_t first_key() const { return is_state_space ? values() : keys(); }
  std::int64_t first_value() const { return is_state_space ? 0 : 2 * keys(); }
  /// Values that are normalized together.
  std::int64_t norm_size() const { return is_state_space ? values() / key_heads : value_dim; }
  /// Weights of such norms.
  std::int64_t norm_weights() const { return is_state_space ? values() : value_dim; }
  std::int64_t key_head_of(std::int64_t value_head) const {
    return in_turn ? value_head % key_heads : value_head / (value_heads / key_heads);
  }
  /// The rows before, and behind them the heads' matrices.
  std::int64_t state_floats() const { return (kernel - 1) * channels() + key_dim * values(); }
};

/// Mlps of which a token takes some in each layer.
struct expert_config {
  std::int64_t count = 0;  ///< in each layer, of `ffn`; 0: one mlp for all tokens
  std::int64_t taken = 0;
  bool whole_shares = true;     ///< shares of the experts taken add up to one; else to what the router gave them
  bool sigmoid_shares = false;  ///< the router gives sigmoids of its scores; else their softmax
  bool choice_bias = false;     ///< each expert has a number that is added to that, for the choice alone
  float share_factor = 1.0f;    ///< of all shares
  std::int64_t shared_ffn = 0;  ///< of an mlp beside the experts, for all tokens; 0: none
  bool shared_gate = false;     ///< of which a token takes as much as the sigmoid of a product says
  std::int64_t groups = 1;      ///< of as many experts each: those taken are of the best groups
  std::int64_t groups_taken = 1;
  std::int64_t group_best = 1;  ///< of a group's experts, whose sum says how good it is
  /// Experts read rows that are normalized for them, their router others, and what they and the mlp beside them make is
  /// normalized apart. Each expert has a factor of its shares.
  bool apart = false;
  std::int64_t dense_ffn = 0;      ///< of the mlp in layers that have no experts
  std::vector<bool> dense_layers;  ///< which these are, of a mixture; empty: none
};

/// Heads of layers with the global rope, where they differ from those of layers with the local one.
struct wide_heads {
  std::int64_t dim = 0, kv_heads = 0;  ///< 0: they do not
  bool values_are_keys = false;        ///< their v is what makes k, before its norm
};

/// Latent attention (DeepSeek): all heads read one short row of each position, which is kept in place of keys and
/// values. It is the key of a single kv head, the part that turns first; what is behind it is the value, too. Each head
/// brings its query to that form, and what it mixes from there back, with a matrix of its own.
struct latent_config {
  std::int64_t rank = 0;        ///< of the part that does not turn; 0: the model attends as others do
  std::int64_t query_rank = 0;  ///< of what queries are made of; 0: of the rows themselves
  std::int64_t turned = 0;      ///< of a query and of the row
  std::int64_t plain = 0;       ///< the other part of a query, before it is brought to the rank
  std::int64_t value = 0;       ///< of what a head gives

  std::int64_t row() const { return turned + rank; }
  std::int64_t query() const { return turned + plain; }
};

/// Where a file has the parts of a layer, if it counts them as layers of their own.
struct file_layer {
  std::int64_t mixer = 0;
  std::int64_t mlp = -1;  ///< -1: the layer has none
};

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
  /// The class that the model was trained with turns neighbours in a head: its q and k are put in order when they are
  /// read, and what an adapter adds to them (row_order.hpp).
  bool turns_neighbours = false;
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
  bool joined_qkv = false;            ///< a GGUF file has q, k and v (of linear attention z, too) in one tensor
  bool joined_experts = false;        ///< gates and ups of all experts are in one tensor (in a folder all downs, too)
  bool sees_pictures = false;         ///< it is part of a model that does: PEFT's names of its layers say so
  std::vector<std::int64_t> windows;  ///< per layer: positions a token sees (sliding window); 0 sees all; empty: all 0

  std::vector<mixer_kind> mixers;       ///< per layer; empty: all attention
  std::vector<file_layer> file_layers;  ///< per layer; empty: the file's layers are ours, and have mlps
  delta_config delta;                   ///< of layers that mix so
  std::int64_t convolved_rows = 0;      ///< that layers of short convolutions see, with the newest one

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
  std::int64_t keys_of(std::int64_t layer) const {
    const layer_rope rope = rope_of(layer);
    if (!shares_keys(layer)) return layer;
    std::int64_t source = layers - sharing_layers - 1;
    while (source > 0 && rope_of(source) != rope) --source;
    return source;
  }
  /// Later ones read its keys and values.
  bool is_shared(std::int64_t layer) const {
    for (std::int64_t later = layers - sharing_layers; later < layers; ++later)
      if (later > layer && keys_of(later) == layer) return true;
    return false;
  }
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
    return experts.count > 0 && (experts.dense_layers.empty() || !experts.dense_layers[to_size(layer)]);
  }
  /// Or experts.
  bool has_mlp(std::int64_t layer) const { return file_layers.empty() || file_layers[to_size(layer)].mlp >= 0; }
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
  std::int64_t state_bytes() const {
    std::int64_t bytes = 0;
    for (std::int64_t layer = 0; layer < layers; ++layer) bytes += state_bytes(layer);
    return bytes;
  }
  float score_divisor() const {
    if (is_latent()) return latent_score_divisor();
    return std::sqrt(static_cast<float>(score_dim > 0 ? score_dim : static_cast<double>(head_dim)));
  }
  float latent_score_divisor() const {
    const bool stretches = rope.scaling == rope_scaling::yarn && rope.factor > 1;
    const double by = stretches ? 1 + 0.1 * rope.yarn.score_stretch * logarithm(rope.factor) : 1;
    return static_cast<float>(std::sqrt(static_cast<double>(latent.query())) / (by * by));
  }
};

/// What config.has_uncommon_heads means, of this model.
std::string_view uncommon_heads(const model_config& config);

/// Sizes must be positive, within sane bounds and fit each other; the message names the field.
void check(const model_config& config, const std::string& where);

}  // namespace troupe
