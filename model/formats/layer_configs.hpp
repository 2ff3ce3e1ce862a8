// What layers of some kinds have, beside what every model has.
#pragma once
#include <cstdint>
#include <vector>

namespace troupe {

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

/// Sizes of the heads that layers of one kind have.
struct head_sizes {
  std::int64_t dim = 0, kv_heads = 0;
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

}  // namespace troupe
