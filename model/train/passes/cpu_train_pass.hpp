#pragma once
#include <optional>
#include <vector>

#include "model/train/passes/cpu_train_attention.hpp"
#include "model/train/passes/cpu_train_convolution.hpp"
#include "model/train/passes/cpu_train_delta.hpp"
#include "model/train/passes/cpu_train_latent.hpp"
#include "model/train/passes/cpu_train_loss.hpp"
#include "model/train/passes/cpu_train_mlp.hpp"
#include "model/train/passes/cpu_train_rows.hpp"
#include "model/train/passes/cpu_train_tokens.hpp"
#include "model/train/passes/train_pass.hpp"

namespace troupe {

/// The processor's: the pool of `compute` helps, and the number of threads changes no bit.
class cpu_train_pass final : public train_pass {
 public:
  cpu_train_pass(const trained_model& model, const compute& with, const options& chosen);

  pass_result train(const training_rows& batch, float factor, const dropout_key& dropout) override;
  pass_result measure(const training_rows& batch) override;

 private:
  layer_rows rows_of(const training_rows& batch, std::size_t layer, bool keep);
  void begin(const training_rows& batch, const dropout_key& dropout);
  void embed(const training_rows& batch, float_rows hidden);
  void embed_back(const training_rows& batch);
  void forward(const training_rows& batch, bool keep);
  /// `out` may be null where only what backward reads is wanted.
  void forward_layer(const layer_rows& at, float_rows out);
  void backward_layer(const layer_rows& at);
  void mix(const layer_rows& at, float_rows out);
  void mix_back(const layer_rows& at, const_float_rows given, gradient_target to);

  const trained_model& model_;
  cpu_train_rows rows_;
  std::optional<cpu_train_attention> attention_;
  std::optional<cpu_train_latent> latent_;
  std::optional<cpu_train_delta> delta_;
  cpu_train_convolution convolution_;
  cpu_train_mlp mlp_;
  cpu_train_tokens tokens_;
  cpu_train_loss loss_;
  std::vector<row_memory> inputs_;              ///< of each layer, and the last one's output
  std::vector<layer_activations> activations_;  ///< of each, or of any in turn: the first serves where nothing is kept
};

}  // namespace troupe
