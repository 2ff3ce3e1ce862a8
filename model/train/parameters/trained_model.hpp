#pragma once
#include <memory>
#include <vector>

#include "model/arch/loaded_model.hpp"
#include "model/train/kernels/products.hpp"
#include "model/train/parameters/parameter_set.hpp"

namespace troupe {

/// Factors beside one linear layer: y += scale B (A x). They point into a parameter_set.
struct lora_factors {
  std::int64_t rank = 0;  ///< 0: none
  std::int64_t stride = 0, a_stride = 0;
  float scale = 0;
  std::uint32_t stream = 0;                ///< of its dropout; modules that share A share it
  const float *a = nullptr, *b = nullptr;  ///< [rank, ins], [outs, rank]
  float *a_gradient = nullptr, *b_gradient = nullptr;
};

struct trained_linear {
  trained_matrix w;  ///< outs is 0 where the model has no such layer
  const float* bias = nullptr;
  float* bias_gradient = nullptr;
  lora_factors lora = {};
};

struct trained_norm {
  const float *weight = nullptr, *bias = nullptr;
  float *weight_gradient = nullptr, *bias_gradient = nullptr;
};

using trained_expert = expert_parts<trained_matrix>;
/// Of these, linear layers and the norms of dense layers can be trained; all else is frozen.
using trained_layer = layer_parts<trained_linear, trained_norm, trained_matrix>;

/// A model as a training pass sees it: frozen weights that lie in the packed file which serving maps too, or weights
/// that are trained themselves. Gradients are nullptr for what is frozen.
struct trained_model {
  model_config config;
  trained_matrix embeddings, head;
  trained_matrix token_embeddings, token_projection;  ///< what a token brings to the layers; frozen, or nothing
  trained_norm token_projection_norm;
  const float* positions = nullptr;
  float* positions_gradient = nullptr;
  std::int64_t position_stride = 0;
  std::vector<trained_layer> layers;
  trained_norm final_norm;
  std::shared_ptr<const loaded_model> base;  ///< keeps the packed weights; nullptr where all is trained
};

/// All of it frozen.
trained_model frozen(std::shared_ptr<const loaded_model> base);

/// Of its adapter; 0 where none is trained.
std::int64_t largest_rank(const trained_model& model);

}  // namespace troupe
