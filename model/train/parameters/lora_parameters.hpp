#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "model/lora/factor_order.hpp"
#include "model/train/parameters/lora_options.hpp"
#include "model/train/parameters/parameter_set.hpp"
#include "model/train/parameters/trained_model.hpp"

namespace troupe {

/// The trained factors of an adapter, attached to a frozen model.
class lora_parameters {
 public:
  /// Gives `model` factors: A uniform within 1 / sqrt(inputs) as PEFT has it, B zero. Throws input_error where a target
  /// fits no layer.
  lora_parameters(trained_model& model, lora_options options, std::uint64_t seed);

  const parameter_set& parameters() const { return parameters_; }
  const lora_options& options() const { return options_; }

  /// Values from an adapter of the same shape, as PEFT wrote it.
  void load(const std::filesystem::path& folder, const model_config& base);
  /// Writes adapter_config.json and adapter_model.safetensors, each under another name first. `base_name` and `dropout`
  /// go into the configuration. Throws runtime_error where the disk fails.
  void save(const std::filesystem::path& folder, const std::string& base_name, double dropout = 0) const;

 private:
  struct module {
    std::string name;                                     ///< PEFT's, without prefix: "model.layers.0.self_attn.q_proj"
    std::vector<linear_kind> kinds;                       ///< of our layers that share it: GPT-2's c_attn is three
    factor_order order;                                   ///< in PEFT's files
    std::int64_t layer = 0, rank = 0, ins = 0, outs = 0;  ///< outs of all
    float scale = 0;
    std::size_t a = 0, b = 0;
  };

  void find_modules(const model_config& base);
  void attach(trained_model& model);
  void initialize(std::uint64_t seed);
  bool are_names(const std::vector<std::string>& targets) const;
  std::string config_text(const std::string& base_name, double dropout) const;

  lora_options options_;
  bool fan_in_fan_out_ = false;
  bool short_names_ = true;  ///< say which modules: no other part of the model has such
  std::vector<module> modules_;
  parameter_set parameters_;
};

}  // namespace troupe
