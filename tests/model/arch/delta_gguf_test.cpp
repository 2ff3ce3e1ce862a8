// GGUF files of models with linear attention, made of the golden folders as llama.cpp's converter makes them.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "model/formats/model_files.hpp"
#include "tests/model/arch/golden_gguf.hpp"

namespace troupe {
namespace {

using floats = std::vector<float>;

/// Converts a folder, tensor by tensor.
class delta_converter {
 public:
  delta_converter(const std::string& model, std::string arch, bool keeps_qkvz)
      : folder_(open_model(golden / model)), arch_(std::move(arch)), keeps_qkvz_(keeps_qkvz) {}

  std::string file() {
    for (const auto& [name, tensor] : folder_.tensors.tensors) convert(name, tensor);
    return gguf_of(metadata(), made_);
  }

 private:
  test::gguf_builder metadata() const {
    const model_config& config = folder_.config;
    test::gguf_builder file;
    const auto u32 = [&](const char* key, std::int64_t value) {
      file.u32(arch_ + "." + key, static_cast<std::uint32_t>(value));
    };
    file.string("general.architecture", arch_).f32(arch_ + ".attention.layer_norm_rms_epsilon", config.norm_eps);
    file.f32(arch_ + ".rope.freq_base", static_cast<float>(config.rope.theta));
    u32("block_count", config.layers), u32("embedding_length", config.hidden), u32("context_length", config.context);
    u32("attention.head_count", config.heads), u32("attention.head_count_kv", config.kv_heads);
    u32("attention.key_length", config.head_dim), u32("rope.dimension_count", config.rotary_dim);
    if (config.experts.count == 0) u32("feed_forward_length", config.ffn);
    if (config.experts.count > 0)
      u32("expert_feed_forward_length", config.ffn), u32("expert_count", config.experts.count);
    if (config.experts.count > 0) u32("expert_used_count", config.experts.taken);
    if (config.experts.count > 0) u32("expert_shared_feed_forward_length", config.experts.shared_ffn);
    u32("ssm.conv_kernel", delta().kernel), u32("ssm.state_size", delta().key_dim);
    u32("ssm.group_count", delta().key_heads), u32("ssm.time_step_rank", delta().value_heads);
    u32("ssm.inner_size", delta().values()), u32("full_attention_interval", 2);
    return file;
  }

  void convert(std::string name, const tensor_view& tensor) {
    if (name.find("visual") != name.npos) return;
    auto [sizes, values] = as_floats(tensor);
    for (const std::string prefix : {"model.language_model.", "model."})
      if (name.starts_with(prefix)) name.erase(0, prefix.size());
    if (name.ends_with("norm.weight") && name.find("linear_attn") == name.npos)
      for (float& value : values) value += 1;
    if (name == "embed_tokens.weight") return put("token_embd.weight", {sizes, values});
    if (name == "norm.weight") return put("output_norm.weight", {sizes, values});
    if (name == "lm_head.weight") return put("output.weight", {sizes, values});
    const std::string layer = name.substr(0, 9), to = "blk." + name.substr(7, 2);  // "layers.0.", "blk.0."
    convert_part(name.substr(layer.size()), to, {sizes, values});
  }

  void convert_part(const std::string& part, const std::string& to, converted_tensor tensor) {
    const auto puts = [&](const char* from, const char* name) {
      if (part == std::string(from) + ".weight") put(to + name + ".weight", tensor);
    };
    puts("input_layernorm", "attn_norm"), puts("post_attention_layernorm", "post_attention_norm");
    puts("self_attn.q_proj", "attn_q"), puts("self_attn.k_proj", "attn_k"), puts("self_attn.v_proj", "attn_v");
    puts("self_attn.o_proj", "attn_output"), puts("self_attn.q_norm", "attn_q_norm");
    puts("self_attn.k_norm", "attn_k_norm"), puts("mlp.gate_proj", "ffn_gate"), puts("mlp.up_proj", "ffn_up");
    puts("mlp.down_proj", "ffn_down"), puts("mlp.gate", "ffn_gate_inp");
    puts("mlp.shared_expert.gate_proj", "ffn_gate_shexp"), puts("mlp.shared_expert.up_proj", "ffn_up_shexp");
    puts("mlp.shared_expert.down_proj", "ffn_down_shexp"), puts("linear_attn.norm", "ssm_norm");
    puts("linear_attn.in_proj_ba", "ssm_ba");
    if (part == "mlp.shared_expert_gate.weight")
      put(to + "ffn_gate_inp_shexp.weight", {{tensor.sizes[0]}, tensor.values});
    if (part.starts_with("mlp.experts.")) return convert_experts(part.substr(12), to, tensor);
    if (part == "linear_attn.in_proj_qkvz.weight") return convert_qkvz(to, tensor);
    const std::int64_t before_v = 2 * delta().keys();
    const auto width = static_cast<std::int64_t>(tensor.sizes[0]);
    floats& values = tensor.values;
    if (part == "linear_attn.in_proj_qkv.weight") tile(values, before_v * width, delta().value_dim * width);
    if (part == "linear_attn.in_proj_z.weight") tile(values, 0, delta().value_dim * width);
    if (part == "linear_attn.in_proj_a.weight" || part == "linear_attn.in_proj_b.weight") tile(values, 0, width);
    if (part == "linear_attn.dt_bias" || part == "linear_attn.A_log") tile(values, 0, 1);
    if (part == "linear_attn.A_log")
      for (float& value : values) value = -std::exp(value);
    if (part == "linear_attn.conv1d.weight") {
      tensor.sizes.erase(tensor.sizes.begin() + 1);
      tile(values, before_v * width, delta().value_dim * width);
    }
    if (part == "linear_attn.out_proj.weight")
      for (std::int64_t row = 0; row < folder_.config.hidden; ++row) {
        floats columns(values.begin() + row * width, values.begin() + (row + 1) * width);
        tile(columns, 0, delta().value_dim);
        std::copy(columns.begin(), columns.end(), values.begin() + row * width);
      }
    puts("linear_attn.in_proj_qkv", "attn_qkv"), puts("linear_attn.in_proj_z", "attn_gate");
    puts("linear_attn.in_proj_a", "ssm_alpha"), puts("linear_attn.in_proj_b", "ssm_beta");
    puts("linear_attn.conv1d", "ssm_conv1d"), puts("linear_attn.out_proj", "ssm_out");
    if (part == "linear_attn.A_log") put(to + "ssm_a", tensor);
    if (part == "linear_attn.dt_bias") put(to + "ssm_dt.bias", tensor);
  }

  /// Together, or one by one in their order.
  void convert_experts(const std::string& part, const std::string& to, const converted_tensor& tensor) {
    const auto experts = static_cast<std::uint64_t>(folder_.config.experts.count);
    if (part == "gate_up_proj") {
      const std::uint64_t half = tensor.sizes[0] * tensor.sizes[1] / 2;
      for (std::uint64_t expert = 0; expert < experts; ++expert)
        for (const std::uint64_t which : {0, 1}) {
          const auto first = tensor.values.begin() + static_cast<std::ptrdiff_t>((2 * expert + which) * half);
          append(to + (which ? "ffn_up_exps.weight" : "ffn_gate_exps.weight"), {tensor.sizes[0], tensor.sizes[1] / 2},
                 {first, first + static_cast<std::ptrdiff_t>(half)});
        }
      return;
    }
    if (part == "down_proj") return put(to + "ffn_down_exps.weight", tensor);
    for (const std::string kind : {"gate", "up", "down"})
      if (part.ends_with("." + kind + "_proj.weight"))
        append(to + "ffn_" + kind + "_exps.weight", tensor.sizes, tensor.values);
  }
  void append(const std::string& name, std::vector<std::uint64_t> sizes, const floats& values) {
    sizes.push_back(static_cast<std::uint64_t>(folder_.config.experts.count));
    converted_tensor& all = made_[name];
    all.sizes = sizes;
    all.values.insert(all.values.end(), values.begin(), values.end());
  }

  void convert_qkvz(const std::string& to, const converted_tensor& tensor) {
    if (keeps_qkvz_) return put(to + "ssm_in.weight", tensor);
    const auto width = static_cast<std::int64_t>(tensor.sizes[0]);
    const std::int64_t values = delta().value_heads / delta().key_heads * delta().value_dim;
    const std::int64_t head = 2 * delta().key_dim + 2 * values;
    floats qkv, z;
    const auto add = [&](floats& into, std::int64_t first, std::int64_t rows) {
      for (std::int64_t h = 0; h < delta().key_heads; ++h) {
        const auto at = tensor.values.begin() + (h * head + first) * width;
        into.insert(into.end(), at, at + rows * width);
      }
    };
    add(qkv, 0, delta().key_dim), add(qkv, delta().key_dim, delta().key_dim), add(qkv, 2 * delta().key_dim, values);
    add(z, 2 * delta().key_dim + values, values);
    const auto rows_of = [&](const floats& all) { return all.size() / to_size(width); };
    put(to + "attn_qkv.weight", {{tensor.sizes[0], rows_of(qkv)}, qkv});
    put(to + "attn_gate.weight", {{tensor.sizes[0], rows_of(z)}, z});
  }

  /// Of Qwen3.5: value heads of `size` numbers each, from `first` on, so that the key heads take turns.
  void tile(floats& values, std::int64_t first, std::int64_t size) const {
    if (arch_ == "qwen3next") return;
    const std::int64_t keys = delta().key_heads, shared = delta().value_heads / keys;
    const floats from = values;
    for (std::int64_t key = 0; key < keys; ++key)
      for (std::int64_t i = 0; i < shared; ++i)
        std::copy_n(from.begin() + first + (key * shared + i) * size, size,
                    values.begin() + first + (i * keys + key) * size);
  }

  void put(const std::string& name, converted_tensor tensor) { made_[name] = std::move(tensor); }
  const delta_config& delta() const { return folder_.config.delta; }

  model_files folder_;
  std::string arch_;
  bool keeps_qkvz_;
  converted_tensors made_;
};

void expect_the_same_from_gguf(const std::string& model, const std::string& arch, bool keeps_qkvz = false) {
  expect_golden_logits(delta_converter(model, arch, keeps_qkvz).file(), model);
}

TEST(gguf_of_linear_attention, of_qwen35_has_value_heads_in_another_order) {
  expect_the_same_from_gguf("qwen3.5", "qwen35");
}

TEST(gguf_of_linear_attention, of_qwen35moe_has_experts_beside_it) {
  expect_the_same_from_gguf("qwen3.5-moe", "qwen35moe");
}

TEST(gguf_of_linear_attention, of_qwen3next_has_what_a_head_projects_apart_or_as_an_older_converter_together) {
  expect_the_same_from_gguf("qwen3-next", "qwen3next");
  expect_the_same_from_gguf("qwen3-next", "qwen3next", true);
}

}  // namespace
}  // namespace troupe
