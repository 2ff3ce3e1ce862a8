#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "model/formats/linear_layers.hpp"
#include "model/formats/model_config.hpp"
#include "model/lora/adapter_config.hpp"

namespace troupe {

/// One adapted linear layer as the files give it: delta W = scale * B A.
struct adapter_part {
  std::int64_t layer = 0;
  linear_kind kind = linear_kind::q;
  std::int64_t rank = 0;
  float scale = 0;       ///< alpha / rank, or alpha / sqrt(rank) for rsLoRA
  std::vector<float> a;  ///< [rank, in]
  std::vector<float> b;  ///< [out, rank], both in our order (factor_order.hpp)

  std::string name() const { return linear_name(layer, kind); }
};

/// PEFT's names of an adapter's two files, and the beginning of each tensor's name.
inline constexpr std::string_view adapter_config_name = "adapter_config.json";
inline constexpr std::string_view adapter_weights_name = "adapter_model.safetensors";
/// Refuses a folder that lacks one of them, or whose weights only pickle can read, with the remedy.
void check_adapter_folder(const std::filesystem::path& folder);
inline constexpr std::string_view adapter_key_prefix = "base_model.model.";
inline constexpr std::size_t most_adapter_config_bytes = 16 << 20;

/// A LoRA adapter, checked against the base model it is for. DoRA, bias, modules_to_save and layers the base does not
/// have are refused by name.
struct adapter_file {
  std::vector<adapter_part> parts;  ///< in the order in which a pass meets the layers
  factor_rules factors = {};        ///< as the configuration has them, or as PEFT's would for a GGUF file
};

/// `path`: PEFT's folder (adapter_config.json, adapter_model.safetensors), or a GGUF file as llama.cpp's converter
/// writes it. GPT-2's fused c_attn becomes q_proj, k_proj and v_proj with the same A and a third of B each.
adapter_file read_adapter(const std::filesystem::path& path, const model_config& base);

}  // namespace troupe
