#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "model/formats/model_config.hpp"
#include "model/lora/adapter.hpp"
#include "model/lora/adapter_config.hpp"

namespace troupe {

/// Which layers an adapter has factors for, and how large: as PEFT's LoraConfig.
struct lora_options {
  factor_rules factors = {};
  /// Names of linear layers ("q_proj"), or regular expressions that fit the end of a module's name from a dot on.
  /// Empty, or PEFT's "all-linear": every linear layer.
  std::vector<std::string> targets = {};

  static constexpr double least_alpha = 1e-6, most_alpha = 1e6;

  bool targets_all() const { return targets.empty() || (targets.size() == 1 && targets.front() == "all-linear"); }
};

/// Refuses, before anything is loaded for it, what cannot be trained: a rank, a target or a pattern that fits no layer.
/// Returns the bytes that the adapter has where it is served in this precision.
std::uint64_t check_lora(const lora_options& options, const model_config& base,
                         adapter_precision precision = adapter_precision::exact);

/// What a checkpoint must match besides the names and shapes of the adapter's parameters (training_options::subject).
/// `base`: its fingerprint.
std::string identity_of(const lora_options& options, std::uint64_t base);

/// The options with which an adapter in PEFT's form was made, so that training may go on.
lora_options read_lora_options(const std::filesystem::path& folder, const model_config& base);

namespace detail {

/// A linear layer that factors are for; those that share a module in PEFT have its name in common.
struct adapted_layer {
  std::int64_t layer = 0;
  linear_kind kind = linear_kind::q;
  std::string name;
  std::int64_t outs = 0, ins = 0;
};

/// Throws input_error where a target fits none.
std::vector<adapted_layer> adapted_layers(const lora_options& options, const model_config& config);

constexpr const char* lora_place = "the adapter";  ///< what errors call the options' place

/// Throws input_error where a number is out of range.
void check_values(const lora_options& options);

}  // namespace detail
}  // namespace troupe
