#pragma once
#include <cstdint>
#include <filesystem>
#include <string>

#include "model/train/parameters/parameter_set.hpp"
#include "model/train/parameters/trained_model.hpp"

namespace troupe {

/// All weights of a small model in f32, to be trained: drawn anew, or taken from a model that is there.
class master_weights {
 public:
  /// Normal with deviation 0.02 as GPT-2 has it, what ends in the residual stream smaller by sqrt(2 layers); norms one,
  /// biases zero.
  master_weights(const model_config& config, std::uint64_t seed);
  /// The weights of a Hugging Face folder or GGUF file, as floats.
  explicit master_weights(const std::filesystem::path& model);

  trained_model& model() { return model_; }
  const parameter_set& parameters() const { return parameters_; }

  /// Writes model.safetensors as the reference library names its tensors, and config.json (`config_text`).
  void save(const std::filesystem::path& folder, const std::string& config_text) const;

 private:
  void make(const model_config& config);
  void attach();
  void draw(std::uint64_t seed);

  trained_model model_;
  parameter_set parameters_;
};

}  // namespace troupe
