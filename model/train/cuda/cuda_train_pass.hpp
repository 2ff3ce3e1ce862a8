#pragma once
#include <array>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "model/arch/cuda/device_weights.hpp"
#include "model/lora/adapter.hpp"
#include "model/train/cuda/device_attention.hpp"
#include "model/train/cuda/device_parameters.hpp"
#include "model/train/cuda/device_rows.hpp"
#include "model/train/cuda/library_linears.hpp"
#include "model/train/passes/linear_rows.hpp"
#include "model/train/passes/train_pass.hpp"

namespace troupe {

/// Passes of an adapter's training on a GPU. The base lies there as its packed file has it and stays as it is; what is
/// trained stays the host's: a layer's values go there just before the pass reaches it, if they have changed, and its
/// gradients come back while those of the layers before it are made. All memory is taken when it is made. A pass is put
/// on one stream, in order; the host waits for what comes back, and before that only so as not to run far ahead. The
/// same bits every time on GPUs of one kind.
class cuda_train_pass final : public train_pass {
 public:
  cuda_train_pass(const trained_model& model, const parameter_set& parameters, const compute& with, options chosen);
  ~cuda_train_pass() override;

  pass_result train(const training_rows& batch, float factor, const dropout_key& dropout) override;
  pass_result measure(const training_rows& batch) override;
  bool sets_gradients() const override { return true; }
  std::string remark() const override { return remark_; }

 private:
  using buffer = cuda::device_buffer<float>;
  /// Of a layer, what backward reads.
  struct activations {
    buffer q, k, v, mixed, gate, up;
    buffer middle;         // the rows between attention and mlp; empty where outputs have norms
    buffer attended, fed;  // what attention and mlp gave, before its norm; empty where outputs have none
    std::array<buffer, linear_kinds> lora;  // A x of each linear layer that is adapted; by a library in bf16
  };

  buffer take(std::int64_t columns) const;
  void make_activations();
  float_rows hidden_rows(const buffer& memory) const { return rows_of(memory, model_.config.hidden); }
  const activations& activations_of(std::size_t layer) const {
    return activations_[options_.keep_activations ? layer : 0];
  }
  device_linear linear_of(std::size_t layer, linear_kind kind) const;
  device_attention::input attention_input(std::size_t layer) const;

  void begin(const training_rows& batch, const dropout_key& dropout);
  pass_result result();
  std::vector<const float*> ends_of_gradients(std::span<const float> all) const;
  void pace();
  void forward();
  /// Without `out` only what backward reads is made.
  void forward_layer(std::size_t layer, const buffer* out);
  void backward_layer(std::size_t layer);
  /// Where the gradient of what attention or mlp reads goes: without norms before them to that of the rows.
  gradient_target input_gradient() const {
    if (model_.config.input_norms) return {hidden_rows(inner_), into::set};
    return {hidden_rows(gradient_), into::add};
  }
  const buffer& middle_of(const activations& a) const { return model_.config.output_norms ? middle_ : a.middle; }
  /// sum = before + what o or down gives, or its norm; `sum` may be null.
  void add_output(std::size_t layer, linear_kind kind, float_rows x, const buffer& before, const buffer* sum);

  // cuda_train_rows.cpp
  cuda::norm_args norm_of(const norm_weights& norm, const buffer& x) const;
  /// For the layers that read what comes out, normed_. Without weights there is no norm: rows are copied.
  void normalize_to_read(const norm_weights& norm, const buffer& x);
  /// Where one norm is over all heads: normed_q_ and normed_k_ of a.q and a.k; and back, from dq_ and dk_ to
  /// themselves.
  void normalize_heads(const layer_weights& weights, const activations& a);
  void normalize_heads_back(const layer_weights& weights, const activations& a);
  /// sum = before + the norm of what was made.
  void add_normalized(const norm_weights& norm, const buffer& before, const buffer& made, const buffer& sum);
  /// dx += what dy means for the input of the norm.
  void normalize_back(const norm_weights& norm, const buffer& x, const buffer& dy, const buffer& dx);
  void normalize_back(const cuda::norm_back_args& args);
  /// Of what o or down gave: gradient_, or in normed_ what that means for the input of the norm.
  float_rows output_gradient(const norm_weights& norm, const buffer& made);
  /// The layers before the activation.
  void gate_and_up(std::size_t layer);
  /// For the layer that reads what comes out, active_.
  void activate_to_read(const activations& a);
  /// From gradient_ to active_gradient_.
  void down_back(std::size_t layer);
  /// From there through the activation and the layers before it to inner_.
  void gate_and_up_back(std::size_t layer);
  void gate_and_up_back_rounded(std::size_t layer);
  void activate_back(const activations& a);
  cuda::rounded_swiglu_args rounded_swiglu_of(const activations& a) const;

  // cuda_train_products.cpp
  void take_library();
  /// Before the layers that read these rows.
  void read(float_rows x, std::int64_t columns);
  bool is_by_library(const matrix_view& w) const { return library_ && w.kind != scheme::f32; }
  library_linears::rows_of_layer rows_of_layer(const device_linear& l, float_rows x);
  /// Whether only a library reads what layers read, so that it need not be there in f32.
  bool is_read_rounded() const { return all_by_library_ && dropout_.probability == 0; }
  /// Whether gate, up, what the activation makes of them, and its gradient are there in bf16 alone.
  bool is_mlp_rounded() const { return is_read_rounded() && mlp_can_be_rounded_; }
  cuda::bf16_rows rounded_rows_of(const buffer& memory, std::int64_t columns) const {
    return cuda::in_place_of(rows_of(memory, columns));
  }
  /// y = or += x W^T + bias + adapters, for linears that share x.
  void apply(std::size_t layer, float_rows x, into how, std::initializer_list<linear_output> outputs);
  /// Of one. y may be null: then only `between` is made.
  void apply(const device_linear& l, float_rows x, float_rows y, into how);
  /// sum = before + the same, of the residual stream; `sum` may be null.
  void apply_to_sum(const device_linear& l, float_rows x, const buffer& before, const buffer* sum);
  /// to = or += dy W + what the adapter gives, of each linear, and the gradients of the adapters' factors.
  void apply_back(std::size_t layer, float_rows x, std::initializer_list<linear_gradient> given, gradient_target to);
  void apply_back(const device_linear& l, float_rows x, const_float_rows dy, gradient_target to);
  void back_by_library(const device_linear& l, float_rows x, const_float_rows dy, gradient_target to);
  /// The gradients of an adapter's factors, and B^T dy in lora_gradient_.
  void lora_back(const device_linear& l, float_rows x, const_float_rows dy);
  /// dx += what lora_gradient_ means for the adapter's input.
  void lora_input_back(const device_linear& l, float_rows dx);
  /// dx += what dropped_, a gradient of what was left after dropping, means for what came before.
  void undrop(const device_linear& l, float_rows dx);
  void multiply(const cuda::weight_product& product);
  void multiply(const cuda::float_product& product);
  float_rows dropped(const device_linear& l, float_rows x);

  void loss(float factor, bool backward);
  void head_back(int first, int count);

  const trained_model& model_;
  compute with_;
  options options_;
  cuda::stream stream_;
  device_weights weights_;
  device_parameters parameters_;
  std::vector<const float*> gradients_before_;  // each layer's end here, of the host's; last the end of all
  device_rows rows_;
  device_attention attention_;
  std::int64_t heads_width_, kv_width_, lora_width_, loss_rows_;
  std::vector<buffer> inputs_;  // of each layer, and the last one's output
  std::vector<activations> activations_;
  buffer normed_, middle_, normed_q_, normed_k_, active_, active_gradient_, gradient_, inner_, dq_, dk_, dv_, dropped_,
      lora_gradient_;
  buffer final_, final_gradient_, logits_, slopes_, slices_;
  std::unique_ptr<library_linears> library_;  ///< null: our own kernels serve alone
  bool all_by_library_ = false, mlp_can_be_rounded_ = false;
  std::string remark_;
  cuda::device_buffer<cuda::cross_entropy_result> losses_;
  cuda::pinned_buffer<cuda::cross_entropy_result> losses_on_host_;
  std::array<cuda::event, 2> paced_;
  std::size_t next_paced_ = 0;
  dropout_key dropout_;
};

}  // namespace troupe
