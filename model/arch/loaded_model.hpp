#pragma once
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/mapped_file.hpp"
#include "base/thread_pool.hpp"
#include "model/arch/layer_parts.hpp"
#include "model/formats/model_config.hpp"
#include "model/ops/matrix.hpp"

namespace troupe {

/// y = x W^T + bias
struct linear_weights {
  matrix_view w;
  const float* bias = nullptr;  // [padded outs]
};

/// A norm's vectors, padded to a row of activations with zeros.
struct norm_weights {
  const float* weight = nullptr;
  const float* bias = nullptr;
};

using expert_weights = expert_parts<matrix_view>;

struct layer_weights : layer_parts<linear_weights, norm_weights, matrix_view> {
  template <class F>
  void each_matrix(F f) const {
    for (const linear_kind kind : every_linear)
      if (const matrix_view& w = (*this)[kind].w; w.weights) f(w);
    for (const head_parts<matrix_view>& head : heads) f(head.query), f(head.value);
    if (router.weights) f(router);
    if (shared_gate.weights) f(shared_gate);
    for (const expert_weights& expert : experts) f(expert.gate), f(expert.up), f(expert.down);
  }
};

/// A model ready to run: every weight a view into one mapped, packed file that all processes of the host share.
struct loaded_model {
  model_config config;
  std::string quantization;  ///< "f32", "u8" … or "native" where the file's own types were kept
  matrix_view embeddings;
  const float* positions = nullptr;  // [context, padded hidden]; GPT-2
  matrix_view token_embeddings,
      token_projection;  // [vocab, layers x], [layers x, hidden]; where config.layer_embedding
  norm_weights token_projection_norm;
  std::vector<layer_weights> layers;
  norm_weights final_norm;
  matrix_view head;
  mapped_file file;
};

struct load_options {
  /// None: as the file has it (stored_scheme): blocks and codes as they are where a scheme has them, else as u8g64; F16
  /// as f32; embeddings and head beside codes as q8.
  std::optional<scheme> quant;
  std::vector<std::string> keep;  ///< modules to leave unquantized, by any part of their name: "lm_head", "layers.0."
  std::filesystem::path cache;    ///< folder of packed files; empty: cache_folder()
  std::function<void(std::int64_t done, std::int64_t total)> progress;  ///< bytes packed so far; may be empty
  bool preload = true;  ///< bring all weights in now; else whoever uses some does (preload.hpp), or the first pass
  std::function<void(const std::string& line)> warn = {};  ///< hears why nothing can be kept in the cache; may be empty
};

/// Of the first matrix that rows meet.
scheme usual_scheme(const loaded_model& model);

/// TROUPE_CACHE, else XDG_CACHE_HOME/troupe, else ~/.cache/troupe.
std::filesystem::path cache_folder();

/// Opens a Hugging Face folder, a GGUF file or a folder that `troupe quantize` wrote. A model that is not packed yet is
/// packed into the cache first, once; where the cache cannot be written, into memory, and `warn` hears of it. Throws
/// input_error.
std::shared_ptr<const loaded_model> load_model(const std::filesystem::path& path, const load_options& options,
                                               thread_pool& pool);

}  // namespace troupe
