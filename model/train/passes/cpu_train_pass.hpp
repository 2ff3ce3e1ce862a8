#pragma once
#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/rounding.hpp"
#include "base/to_size.hpp"
#include "model/lora/adapter.hpp"
#include "model/train/passes/attention_pass.hpp"
#include "model/train/passes/delta_pass.hpp"
#include "model/train/passes/expert_pass.hpp"
#include "model/train/passes/train_pass.hpp"

namespace troupe {

/// The processor's: the pool of `compute` helps, and the number of threads changes no bit.
class cpu_train_pass final : public train_pass {
 public:
  cpu_train_pass(const trained_model& model, const compute& with, options chosen);

  /// What such a pass takes, but for some buffers that grow with neither rows nor positions.
  static std::int64_t bytes(const trained_model& model, const options& chosen, int threads);

  pass_result train(const training_rows& batch, float factor, const dropout_key& dropout) override;
  pass_result measure(const training_rows& batch) override;

 private:
  static constexpr std::int64_t rows_per_task = 16;
  using buffer = aligned_buffer<float>;
  struct activations {
    buffer q, k, v, mixed;                      ///< of a layer that attends
    buffer down, values;                        ///< of one of latent attention: before the norm, and what heads give
    buffer qkv, z, delta_b, delta_a, answered;  ///< of one of linear attention
    buffer branches, convolved;                 ///< of one of short convolutions: b, c and x, and what they make
    std::array<buffer, linear_kinds> lora;      ///< A x of each linear layer that is adapted
    buffer gate, up;                            ///< of the mlp that all rows go through
    buffer middle;                              ///< the rows between attention and mlp; empty where outputs have norms
    buffer attended, fed;            ///< what attention and mlp gave, before its norm; empty where outputs have none
    buffer beside, chosen;           ///< what mlp and experts gave that stand apart, before theirs
    buffer token_gates, token_made;  ///< of what a row's token gives the layer: the gates, and what comes of it
  };
  struct linear_output {
    linear_kind kind;
    float_rows y;
  };
  struct linear_gradient {
    linear_kind kind;
    const_float_rows dy;
  };

  /// Of rows of activations, of each kind as wide as the widest layer has them.
  struct row_strides {
    explicit row_strides(const trained_model& model);
    std::int64_t hidden, q, kv, ffn, channel, value, share, branch, token;
    std::int64_t down, query, given, part;  ///< of latent attention: part is of one head
    std::int64_t lora, widest;              ///< lora: 0 where none is trained
  };

  // cpu_train_memory.cpp
  /// What is taken for rows, and counted: shared_ alone stands beside them.
  template <class Visit>
  static void each_activation(activations& a, std::span<const trained_layer> layers, const model_config& config,
                              const row_strides& strides, Visit visit);
  template <class Visit>
  static void each_row_buffer(const model_config& config, const row_strides& strides, Visit visit);
  static std::int64_t floats_of_row(const trained_model& model, const options& chosen, const row_strides& strides);
  static std::int64_t loss_rows_of(const trained_model& model, std::int64_t most_rows);

  buffer take(std::int64_t stride) const;
  void take_row_memory();
  void take_loss_memory();
  /// For any of these layers in turn; what none of them needs is empty.
  activations make_activations(std::span<const trained_layer> layers) const;
  float_rows hidden_rows(const buffer& memory) const { return {memory.data(), strides_.hidden}; }
  float_rows query_rows(const buffer& memory) const { return {memory.data(), strides_.q}; }
  float_rows kv_rows(const buffer& memory) const { return {memory.data(), strides_.kv}; }
  float_rows ffn_rows(const buffer& memory) const { return {memory.data(), strides_.ffn}; }
  float_rows channel_rows(const buffer& memory) const { return {memory.data(), strides_.channel}; }
  float_rows value_rows(const buffer& memory) const { return {memory.data(), strides_.value}; }
  float_rows down_rows(const buffer& memory) const { return {memory.data(), strides_.down}; }
  /// As their linear layer makes them, before they look for what is kept.
  float_rows own_query_rows(const buffer& memory) const { return {memory.data(), strides_.query}; }
  float_rows given_rows(const buffer& memory) const { return {memory.data(), strides_.given}; }
  float_rows part_rows(const buffer& memory) const { return {memory.data(), strides_.part}; }
  float_rows branch_rows(const buffer& memory) const { return {memory.data(), strides_.branch}; }
  float_rows share_rows(const buffer& memory) const { return {memory.data(), strides_.share}; }
  /// A x of this linear layer.
  float_rows lora_rows(const activations& a, linear_kind kind) const {
    return {a.lora[to_size(kind)].data(), strides_.lora};
  }

  // cpu_train_pass.cpp: the layers
  void forward(const training_rows& batch, bool keep);
  void forward_layer(const training_rows& batch, std::size_t layer, activations& a, float_rows out);
  /// out = in + what the mlp gives, or its norm.
  void feed_forward(const trained_layer& weights, activations& a, const_float_rows in, float_rows out);
  /// active_ of the mlp that all rows go through.
  void feed_mlp(const trained_layer& weights, activations& a, const_float_rows normed);
  void backward_layer(const training_rows& batch, std::size_t layer, activations& a);
  /// gradient_, of what the mlp gives, gets what that means for the rows that go in.
  void feed_back(const trained_layer& weights, activations& a, const_float_rows layer_in);
  /// From the gradient of what down gives to those of gate and up, which take their place. A share that rows take of
  /// the mlp is made of normed_, and inner_ gets what its gradient means for that.
  void down_back(const trained_layer& weights, const activations& a, const_float_rows given);
  void mixture_back(const trained_layer& weights, activations& a, const_float_rows middle);
  /// Where experts stand apart from the mlp beside them.
  void feed_apart(const trained_layer& weights, activations& a, const_float_rows in, float_rows out);
  void apart_back(const trained_layer& weights, activations& a, const_float_rows middle);
  /// Where the gradient of what attention or mlp reads goes, and how its first part: without norms before them to that
  /// of the rows.
  std::pair<float_rows, into> input_gradient() const {
    if (model_.config.input_norms) return {hidden_rows(inner_), into::set};
    return {hidden_rows(gradient_), into::add};
  }
  /// The same for an mlp that reads what attention reads: it waits for the rest of that.
  std::pair<float_rows, into> mlp_input_gradient() const {
    return model_.config.parallel ? std::pair(hidden_rows(mlp_input_gradient_), into::set) : input_gradient();
  }
  float_rows middle_rows(const activations& a) const { return hidden_rows(a.middle.size() > 0 ? a.middle : middle_); }
  /// out = in + what o or down gives, or its norm. `out` may be null where only what backward reads is wanted.
  void add_output(const trained_layer& weights, linear_kind kind, const_float_rows x, activations& a,
                  const_float_rows in, float_rows out);

  // cpu_train_latent.cpp
  void attend_latent(const training_rows& batch, std::size_t layer, activations& a, const_float_rows in,
                     float_rows out);
  void latent_back(const training_rows& batch, std::size_t layer, activations& a, const_float_rows given,
                   std::pair<float_rows, into> to);
  /// normed_k_ and, where queries are made of a shorter row, normed_down_.
  void normalize_latent(const trained_layer& weights, const activations& a);
  /// From the gradient of normed rows to that of theirs, in place.
  void normalize_kept_back(const trained_layer& weights, const activations& a);
  void normalize_down_back(const trained_layer& weights, const activations& a);
  /// Of all heads side by side, each head's numbers from `first` on.
  struct head_columns {
    float_rows rows;
    std::int64_t step, first, count;
  };
  void copy_heads(const head_columns& from, const head_columns& to);
  /// Each head's numbers by its matrix, and back.
  void multiply_heads(const trained_layer& weights, trained_matrix head_parts<trained_matrix>::*by,
                      const head_columns& from, const head_columns& to);
  void multiply_heads_back(const trained_layer& weights, trained_matrix head_parts<trained_matrix>::*by,
                           const head_columns& from, const head_columns& to);

  // cpu_train_mixers.cpp: what rows read of each other
  attention_pass& attention_of(std::size_t layer);
  void end_heads(float_rows rows, std::int64_t width);
  /// Keys and values of the last layer of a kind that has them, which others read.
  void share_keys(std::size_t layer, const activations& a);
  void add_shared_gradients(std::size_t layer);
  attention_pass::input attention_input(const training_rows& batch, std::size_t layer, const activations& a) const;
  delta_pass::input delta_input(const training_rows& batch, const trained_layer& weights, const activations& a) const;
  /// A segment's rows, some columns of them: work(column_task).
  template <class Work>
  void for_columns(const training_rows& batch, Work work);
  void mix(const training_rows& batch, std::size_t layer, activations& a, const_float_rows in, float_rows out);
  void attend(const training_rows& batch, std::size_t layer, activations& a, const_float_rows in, float_rows out);
  void run_delta(const training_rows& batch, std::size_t layer, activations& a, const_float_rows in, float_rows out);
  float_rows delta_answers(const trained_layer& weights, const activations& a);
  float_rows delta_answers_back(const trained_layer& weights, const activations& a, float_rows given);
  void run_convolution(const training_rows& batch, std::size_t layer, activations& a, const_float_rows in,
                       float_rows out);
  /// From the gradient of what they gave to `dx`, that of what they read; null where nobody wants it.
  void mix_back(const training_rows& batch, std::size_t layer, activations& a, const_float_rows given,
                std::pair<float_rows, into> dx);
  /// The last step: from the gradients of what linears made of the normalized rows.
  void read_back(std::size_t layer, const activations& a, std::initializer_list<linear_gradient> given,
                 std::pair<float_rows, into> to);
  void attend_back(const training_rows& batch, std::size_t layer, activations& a, const_float_rows given,
                   std::pair<float_rows, into> dx);
  void delta_back(const training_rows& batch, std::size_t layer, activations& a, const_float_rows given,
                  std::pair<float_rows, into> dx);
  void convolution_back(const training_rows& batch, std::size_t layer, activations& a, const_float_rows given,
                        std::pair<float_rows, into> dx);
  /// Attention's gates: what they let through of a.mixed; and back, in the gradient of that and in dq_.
  void open_gates(const activations& a);
  void gates_back(const activations& a, float_rows gradient);

  // cpu_train_tokens.cpp: what rows bring of their tokens to the layers, and what leaves a layer
  void bring_tokens(const training_rows& batch, const_float_rows embedded);
  /// out = what leaves the layer, of what its mlp made of the rows; `out` may be null.
  void finish_layer(std::size_t layer, activations& a, const_float_rows fed, float_rows out);
  void let_through(std::size_t layer, const activations& a);
  /// gradient_, of what leaves the layer, becomes that of what its mlp made of the rows.
  void finish_back(std::size_t layer, activations& a);
  /// Nothing where there is no factor.
  void multiply_rows(float_rows rows, const float* factor);
  float_rows numbers_of_tokens() const;
  /// Whether what leaves a layer is more than what its mlp made of the rows.
  static bool finishes_layers(const model_config& config) { return config.layer_embedding > 0 || config.layer_factors; }
  float_rows token_rows(const buffer& memory) const { return {memory.data(), strides_.token}; }

  // cpu_train_rows.cpp: what happens to each row alone
  void embed(const training_rows& batch, float_rows hidden);
  void embed_back(const training_rows& batch);
  /// Without weights there is no norm: rows are copied.
  void normalize(const trained_norm& norm, const_float_rows x, std::int64_t rows, float_rows out);
  /// Where one norm is over all heads: normed_q_ and normed_k_ of a.q and a.k; and back, from dq_ and dk_ to
  /// themselves.
  void normalize_heads(const trained_layer& weights, const activations& a);
  void normalize_heads_back(const trained_layer& weights, const activations& a);
  /// out = in + norm(made)
  void add_normalized(const trained_norm& norm, const_float_rows in, const_float_rows made, float_rows out);
  /// dx += what dy, which has a row for each of `rows` of x, means for the input of the norm.
  void normalize_back(const trained_norm& norm, const_float_rows x, std::span<const std::int64_t> rows,
                      const_float_rows dy, float_rows dx);
  void normalize_back(const trained_norm& norm, std::int64_t width, const_float_rows x,
                      std::span<const std::int64_t> rows, const_float_rows dy, float_rows dx);
  std::int64_t norm_stride() const {
    return model_.config.joint_qk_norm ? std::max(strides_.hidden, strides_.q) : strides_.hidden;
  }
  /// The gradient of what attention or mlp gave: gradient_, or through its norm in normed_.
  const_float_rows output_gradient(const trained_norm& norm, const buffer& made);
  void activate(const trained_layer& weights, const activations& a);
  void activate_back(const trained_layer& weights, const activations& a);
  /// Where a row takes a share of the mlp beside the experts: active_ times that; and back, from active_gradient_ to
  /// itself and to x, the mlp's input.
  void share_active(const trained_layer& weights, const_float_rows x);
  void share_back(const trained_layer& weights, float_rows dx);

  // cpu_train_products.cpp: linear layers, with the adapters beside them
  /// y = or += x W^T + bias + adapters, for linears that share x. Where y is null only their rows of a.lora are made.
  void apply(const trained_layer& layer, const_float_rows x, activations& a, into how,
             std::initializer_list<linear_output> outputs);
  /// to = or += dy W + what the adapter gives, of each linear, and the gradients of what is trained. `to` may be null.
  void apply_back(const trained_layer& layer, const_float_rows x, const activations& a,
                  std::initializer_list<linear_gradient> given, std::pair<float_rows, into> to);
  /// The gradients of an adapter's factors, and B^T dy in lora_gradient_.
  void lora_back(const trained_linear& linear, const_float_rows between, const_float_rows x, const_float_rows dy);
  /// dx += what lora_gradient_ means for the adapter's input.
  void lora_input_back(const trained_linear& linear, float_rows dx);
  void weights_back(const trained_linear& linear, const_float_rows x, const_float_rows dy);
  dropout_key mask_of(const lora_factors& lora) const;
  const_float_rows dropped(const lora_factors& lora, const_float_rows x, std::int64_t width);

  // cpu_train_loss.cpp: from the last layer to the loss, and back
  pass_result loss(const training_rows& batch, float factor, bool backward);
  pass_result loss_chunk(const training_rows& batch, std::span<const std::int64_t> rows, float factor, bool backward);
  void final_logits(std::span<const std::int64_t> rows);
  void head_back(std::span<const std::int64_t> rows);
  void head_weights_back(std::int64_t count);

  std::span<const std::int64_t> every_row() const { return {row_numbers_.data(), to_size(rows_)}; }
  static std::int64_t row_tasks(std::int64_t rows) { return ceil_div(rows, rows_per_task); }
  void give_way() const {
    if (options_.between) options_.between();
  }
  template <class Work>
  void for_rows(std::int64_t rows, Work work) {
    with_.pool.run_pieces(rows, rows_per_task, [&](std::int64_t first, std::int64_t count, int) {
      for (std::int64_t r = first; r < first + count; ++r) work(r, static_cast<int>(first / rows_per_task));
    });
  }

  const trained_model& model_;
  compute with_;
  const train_kernel_table& kernels_;
  options options_;
  row_strides strides_;
  std::int64_t loss_rows_, logit_stride_;
  products body_, head_;
  attention_pass attention_;
  std::optional<attention_pass> wide_attention_;  // of layers that config.is_wide
  std::optional<delta_pass> delta_;
  std::optional<expert_pass> experts_;
  std::vector<buffer> inputs_;            // of each layer, and the last one's output
  std::vector<activations> activations_;  // of each layer, or of any in turn: the first serves where nothing is kept
  buffer mlp_input_gradient_;             // where that of the mlp waits for attention's
  buffer normed_, middle_, normed_q_, normed_k_, active_, active_gradient_, gradient_, inner_, dq_, dk_, dv_, dropped_,
      lora_gradient_;
  buffer own_queries_, normed_down_, ddown_, dgiven_, part_, part_gradient_;  // of latent attention
  buffer dqkv_, dz_, db_, da_;                                                // of layers of linear attention
  buffer normed_values_;                                                      // of state spaces
  buffer dbranches_;                                                          // of those of short convolutions
  /// That later layers read of a layer of each rope, and the gradients that they give back.
  struct shared_rows {
    buffer k, v, dk, dv;
  };
  std::array<shared_rows, 2> shared_;  // by layer_rope
  buffer token_numbers_, token_active_, token_gradient_;
  buffer finished_;        // what a layer's mlp made of the rows, or scratch of apart_back
  buffer given_, routed_;  // the gradient of what mlp and experts apart gave together, and what their router reads
  buffer final_, final_gradient_, logits_, norm_gradients_;
  buffer slopes_;                          // of capped logits
  buffer shares_, share_gradients_;        // [rows, outs_per_block], of which the first counts
  std::vector<std::int64_t> row_numbers_;  // 0, 1, 2 …
  std::int64_t rows_ = 0;
  dropout_key dropout_;
};

}  // namespace troupe
