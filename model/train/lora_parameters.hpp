#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "model/train/parameter_set.hpp"
#include "model/train/trained_model.hpp"

namespace troupe {

/// Which layers an adapter has factors for, and how large: as PEFT's LoraConfig.
struct lora_options {
  std::int64_t rank = 8;
  double alpha = 16;
  bool rank_stabilized = false;  ///< scale alpha / sqrt(rank): rsLoRA
  double dropout = 0;
  /// Names of linear layers ("q_proj"), or regular expressions that fit the end of a module's name from a dot on.
  /// Empty: every linear layer.
  std::vector<std::string> targets;
  std::vector<std::pair<std::string, std::int64_t>> rank_pattern;
  std::vector<std::pair<std::string, double>> alpha_pattern;
};

/// Refuses, before anything is loaded for it, what cannot be trained: a rank, a target or a pattern that fits no layer.
/// Returns the bytes that the adapter has where it is served.
std::uint64_t check_lora(const lora_options& options, const model_config& base);

/// The trained factors of an adapter, attached to a frozen model.
class lora_parameters {
 public:
  /// Gives `model` factors: A uniform within 1 / sqrt(inputs) as PEFT has it, B zero. Throws input_error where a target
  /// fits no layer.
  lora_parameters(trained_model& model, lora_options options, std::uint64_t seed);

  parameter_set& parameters() { return parameters_; }
  const parameter_set& parameters() const { return parameters_; }
  const lora_options& options() const { return options_; }

  /// Values from an adapter of the same shape, as PEFT wrote it.
  void load(const std::filesystem::path& folder, const model_config& base);
  /// Writes adapter_config.json and adapter_model.safetensors, each under another name first. `base_name` goes into the
  /// configuration. Throws runtime_error where the disk fails.
  void save(const std::filesystem::path& folder, const std::string& base_name) const;

 private:
  struct module {
    std::string name;                                     ///< PEFT's, without prefix: "model.layers.0.self_attn.q_proj"
    std::vector<std::string> ours;                        ///< our modules that share it: GPT-2's c_attn is three
    std::int64_t layer = 0, rank = 0, ins = 0, outs = 0;  ///< outs of all
    float scale = 0;
    std::size_t a = 0, b = 0;
  };

  void find_modules(const model_config& base);
  void attach(trained_model& model);
  void initialize(std::uint64_t seed);
  bool are_names(const std::vector<std::string>& targets) const;
  std::string config_text(const std::string& base_name) const;

  lora_options options_;
  bool fan_in_fan_out_ = false;
  std::vector<module> modules_;
  parameter_set parameters_;
};

/// What a checkpoint must match besides the names and shapes of the adapter's parameters (training_options::subject).
/// `base`: its fingerprint.
std::string identity_of(const lora_options& options, std::uint64_t base);

/// The options with which an adapter in PEFT's form was made, so that training may go on.
lora_options read_lora_options(const std::filesystem::path& folder, const model_config& base);

}  // namespace troupe
