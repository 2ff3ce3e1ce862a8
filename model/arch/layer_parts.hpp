// What a layer of a model has. Serving and training have the same parts, of other types.
#pragma once
#include <cstdint>
#include <vector>

#include "model/formats/linear_layers.hpp"

namespace troupe {

/// [padded outs] each; gpt-oss.
struct expert_biases {
  const float *gate = nullptr, *up = nullptr, *down = nullptr;
};

/// One of the mlps that a layer's tokens choose from.
template <class Matrix>
struct expert_parts {
  Matrix gate, up, down;
  expert_biases biases = {};
};

/// Of latent attention: [rank, plain] and [value, rank].
template <class Matrix>
struct head_parts {
  Matrix query, value;
};

/// Where config.experts.apart.
template <class Norm>
struct apart_norms {
  Norm beside, experts, experts_output;  // what the mlp beside makes, what experts read and what they make
  Norm router;                           // what the router reads
  const float* share_factors = nullptr;  // [padded experts]
};

/// Of a layer of linear attention or of a state space, beside its linear layers.
struct delta_weights {
  const float* convolution = nullptr;       ///< [kernel, padded channels]
  const float* convolution_bias = nullptr;  ///< [padded channels], where delta_config::convolution_bias
  const float* dt_bias = nullptr;           ///< [padded value heads]
  const float* decay = nullptr;             ///< [padded value heads]; delta_config::has_rates says of what
  const float* skip = nullptr;              ///< [padded value heads], of a state space
  const float* norm = nullptr;              ///< [norm_weights]

  /// Where there is none, that is nothing.
  const float* bias_from(std::int64_t column) const { return convolution_bias ? convolution_bias + column : nullptr; }
  float skip_of(std::int64_t head) const { return skip ? skip[head] : 0.0f; }
};

/// Gate, up and down are those of the mlp that all tokens go through, of a mixture beside the experts.
template <class Linear, class Norm, class Matrix>
struct layer_parts : linear_layers<Linear> {
  Norm attention_norm, mlp_norm;  // where config.input_norms
  /// Where config.qk_norm: of each head, or joint_qk_norm of all. Where config.is_latent: of what queries are made of
  /// and of what is kept.
  Norm q_norm, k_norm;
  Norm attention_output_norm, mlp_output_norm;  // where config.output_norms
  std::vector<head_parts<Matrix>> heads;        // where config.is_latent
  delta_weights delta;                          // where config.mixer_of says so
  const float* convolution = nullptr;           // [rows, padded hidden], where config.mixer_of says so
  const float* sinks = nullptr;                 // [heads], where config.attention_sinks
  Matrix router;                                // [experts, hidden]
  const float* router_bias = nullptr;
  const float* choice_bias = nullptr;  // [experts], where config.experts.choice_bias
  Matrix shared_gate;                  // [1, hidden], where config.experts.shared_gate
  std::vector<expert_parts<Matrix>> experts;
  apart_norms<Norm> apart;
  Norm token_norm;                // of what a row's token gives, where config.layer_embedding
  const float* factor = nullptr;  // one, where config.layer_factors
};

}  // namespace troupe
