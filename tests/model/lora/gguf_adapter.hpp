#pragma once
#include <array>
#include <cstring>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/to_size.hpp"
#include "model/formats/model_config.hpp"
#include "model/formats/tensors/safetensors.hpp"
#include "tests/base/temp_folder.hpp"
#include "tests/model/formats/gguf/gguf_builder.hpp"

namespace troupe::test {

/// A PEFT adapter as llama.cpp's converter writes it: by its rules, not by this program's tables.
class gguf_adapter {
 public:
  gguf_adapter(const std::filesystem::path& peft, const model_config& base, const std::string& architecture)
      : base_(base), architecture_(architecture) {
    const auto config = nlohmann::json::parse(read_file(peft / "adapter_config.json"));
    to_.string("general.architecture", architecture).string("general.type", "adapter").string("adapter.type", "lora");
    to_.f32("adapter.lora.alpha", config["lora_alpha"].get<float>());
    for (const auto& [name, tensor] : open_safetensors(peft / "adapter_model.safetensors").tensors) add(name, tensor);
  }

  std::string build() const { return to_.build(); }
  /// For changes before build().
  gguf_builder& builder() { return to_; }

 private:
  struct part {
    std::string_view theirs, gguf;
  };
  static constexpr std::array<part, 29> parts{{{"self_attn.q_proj", "attn_q"},
                                               {"self_attn.q_a_proj", "attn_q_a"},
                                               {"self_attn.q_b_proj", "attn_q_b"},
                                               {"self_attn.kv_a_proj_with_mqa", "attn_kv_a_mqa"},
                                               {"self_attn.k_proj", "attn_k"},
                                               {"self_attn.v_proj", "attn_v"},
                                               {"self_attn.qkv_proj", "attn_qkv"},
                                               {"self_attn.o_proj", "attn_output"},
                                               {"mlp.gate_proj", "ffn_gate"},
                                               {"mlp.up_proj", "ffn_up"},
                                               {"mlp.gate_up_proj", "ffn_up"},
                                               {"mlp.down_proj", "ffn_down"},
                                               {"mlp.shared_expert.gate_proj", "ffn_gate_shexp"},
                                               {"mlp.shared_expert.up_proj", "ffn_up_shexp"},
                                               {"mlp.shared_expert.down_proj", "ffn_down_shexp"},
                                               {"mixer.in_proj", "ssm_in"},
                                               {"mixer.out_proj", "ssm_out"},
                                               {"mixer.q_proj", "attn_q"},
                                               {"mixer.k_proj", "attn_k"},
                                               {"mixer.v_proj", "attn_v"},
                                               {"mixer.o_proj", "attn_output"},
                                               {"mixer.up_proj", "ffn_up"},
                                               {"mixer.down_proj", "ffn_down"},
                                               {"mixer.shared_experts.up_proj", "ffn_up_shexp"},
                                               {"mixer.shared_experts.down_proj", "ffn_down_shexp"},
                                               {"mamba.in_proj", "ssm_in"},
                                               {"mamba.out_proj", "ssm_out"},
                                               {"shared_mlp.output_linear", "ffn_down"},
                                               {"shared_mlp.input_linear", ""}}};

  /// "base_model.model.model.layers.3.self_attn.q_proj.lora_A.weight"
  void add(const std::string& name, const tensor_view& tensor) {
    const auto layers = name.find("layers.") + 7, layer_end = name.find('.', layers), side = name.find(".lora_");
    const std::string layer = "blk." + name.substr(layers, layer_end - layers) + ".";
    const std::string module = name.substr(layer_end + 1, side - layer_end - 1);
    const std::string ending = name[side + 6] == 'A' ? ".weight.lora_a" : ".weight.lora_b";
    const auto rows = to_size(tensor.shape[0]);
    std::string data(reinterpret_cast<const char*>(tensor.data.data()), tensor.data.size());
    if (module == "shared_mlp.input_linear") return add_halves(layer, ending, tensor, data);
    if (ending.ends_with('b') && turns_neighbours()) {
      if (module.ends_with(".q_proj")) data = interleaved(data, rows, to_size(base_.heads));
      if (module.ends_with(".k_proj")) data = interleaved(data, rows, to_size(base_.kv_heads));
    }
    for (const part& each : parts)
      if (each.theirs == module) put(layer + std::string(each.gguf) + ending, rows, tensor, data);
  }

  /// Gate and up have their rows of B each, and A in common.
  void add_halves(const std::string& layer, const std::string& ending, const tensor_view& tensor,
                  const std::string& data) {
    const bool is_b = ending.ends_with('b');
    const auto rows = to_size(tensor.shape[0]) / (is_b ? 2 : 1);
    const std::size_t bytes = data.size() / (is_b ? 2 : 1);
    put(layer + "ffn_gate" + ending, rows, tensor, data.substr(0, bytes));
    put(layer + "ffn_up" + ending, rows, tensor, data.substr(is_b ? bytes : 0, bytes));
  }

  void put(const std::string& name, std::size_t rows, const tensor_view& tensor, const std::string& data) {
    to_.tensor(name, {static_cast<std::uint64_t>(tensor.shape[1]), rows}, 0, data);
  }

  bool turns_neighbours() const {
    for (const std::string_view each : {"llama", "mistral3", "smollm3", "granite", "granitemoe", "granitehybrid",
                                        "nemotron_h", "nemotron_h_moe", "arcee"})
      if (architecture_ == each) return true;
    return false;
  }

  /// The two halves of each head become neighbours.
  static std::string interleaved(const std::string& from, std::size_t rows, std::size_t heads) {
    std::string to = from;
    const std::size_t bytes = from.size() / rows, dim = rows / heads;
    for (std::size_t row = 0; row < rows; ++row) {
      const std::size_t head = row / dim, half = row % dim / (dim / 2), pair = row % (dim / 2);
      std::memcpy(to.data() + (head * dim + 2 * pair + half) * bytes, from.data() + row * bytes, bytes);
    }
    return to;
  }

  const model_config& base_;
  std::string architecture_;
  gguf_builder to_;
};

}  // namespace troupe::test
