// GGUF files of Gemma 4, made of the golden folders as llama.cpp's converter makes them.
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "model/formats/model_files.hpp"
#include "tests/model/arch/golden_gguf.hpp"

namespace troupe {
namespace {

// Longer names before those that they contain.
const std::array<renamed, 31> gemma4_names = {{{"model.embed_tokens_per_layer", "per_layer_token_embd"},
                                               {"model.per_layer_model_projection", "per_layer_model_proj"},
                                               {"model.per_layer_projection_norm", "per_layer_proj_norm"},
                                               {"model.embed_tokens", "token_embd"},
                                               {"model.norm", "output_norm"},
                                               {"model.layers.", "blk."},
                                               {"post_per_layer_input_norm", "post_norm"},
                                               {"per_layer_input_gate", "inp_gate"},
                                               {"per_layer_projection", "proj"},
                                               {"input_layernorm", "attn_norm"},
                                               {"self_attn.q_proj", "attn_q"},
                                               {"self_attn.k_proj", "attn_k"},
                                               {"self_attn.v_proj", "attn_v"},
                                               {"self_attn.o_proj", "attn_output"},
                                               {"self_attn.q_norm", "attn_q_norm"},
                                               {"self_attn.k_norm", "attn_k_norm"},
                                               {"post_attention_layernorm", "post_attention_norm"},
                                               {"pre_feedforward_layernorm_2", "pre_ffw_norm_2"},
                                               {"post_feedforward_layernorm_1", "post_ffw_norm_1"},
                                               {"post_feedforward_layernorm_2", "post_ffw_norm_2"},
                                               {"pre_feedforward_layernorm", "ffn_norm"},
                                               {"post_feedforward_layernorm", "post_ffw_norm"},
                                               {"mlp.gate_proj", "ffn_gate"},
                                               {"mlp.up_proj", "ffn_up"},
                                               {"mlp.down_proj", "ffn_down"},
                                               {"experts.gate_up_proj", "ffn_gate_up_exps.weight"},
                                               {"experts.down_proj", "ffn_down_exps.weight"},
                                               {"router.proj", "ffn_gate_inp"},
                                               {"router.scale", "ffn_gate_inp.scale"},
                                               {"router.per_expert_scale", "ffn_down_exps.scale"},
                                               {"layer_scalar", "layer_output_scale.weight"}}};

test::gguf_builder gemma4_metadata(const model_config& config) {
  test::gguf_builder file;
  const auto u32 = [&](const std::string& key, std::int64_t value) {
    file.u32("gemma4." + key, static_cast<std::uint32_t>(value));
  };
  file.string("general.architecture", "gemma4").f32("gemma4.attention.layer_norm_rms_epsilon", config.norm_eps);
  file.f32("gemma4.rope.freq_base", static_cast<float>(config.rope.theta));
  file.f32("gemma4.rope.freq_base_swa", static_cast<float>(config.local_rope.theta));
  file.f32("gemma4.final_logit_softcapping", config.logit_cap);
  u32("block_count", config.layers), u32("embedding_length", config.hidden), u32("context_length", config.context);
  u32("attention.head_count", config.heads), u32("attention.sliding_window", 16);
  u32("attention.key_length", config.wide.dim), u32("attention.value_length", config.wide.dim);
  u32("attention.key_length_swa", config.head_dim), u32("rope.dimension_count", config.wide.dim);
  u32("attention.shared_kv_layers", config.sharing_layers);
  u32("embedding_length_per_layer_input", config.layer_embedding);
  std::vector<std::uint32_t> heads, mlps;
  std::vector<bool> slides;
  for (std::int64_t layer = 0; layer < config.layers; ++layer) {
    heads.push_back(static_cast<std::uint32_t>(config.kv_heads_of(layer)));
    mlps.push_back(static_cast<std::uint32_t>(config.mlp_width(layer)));
    slides.push_back(config.window_of(layer) > 0);
  }
  file.u32s("gemma4.attention.head_count_kv", heads).booleans("gemma4.attention.sliding_window_pattern", slides);
  if (config.experts.count == 0) return file.u32s("gemma4.feed_forward_length", mlps);
  u32("feed_forward_length", config.experts.shared_ffn), u32("expert_feed_forward_length", config.ffn);
  u32("expert_count", config.experts.count), u32("expert_used_count", config.experts.taken);
  return file;
}

converted_tensors gemma4_tensors(const model_files& folder) {
  converted_tensors made;
  for (const auto& [name, tensor] : folder.tensors.tensors) made[with_names(name, gemma4_names)] = as_floats(tensor);
  const std::vector<float>& divisors = folder.config.rope.frequency_divisors;
  made["rope_freqs.weight"] = {{divisors.size()}, divisors};
  return made;
}

void expect_the_same_gemma4(const std::string& model) {
  const model_files folder = open_model(golden / model);
  expect_golden_logits(gguf_of(gemma4_metadata(folder.config), gemma4_tensors(folder)), model);
}

TEST(gguf_of_gemma4, has_two_kinds_of_heads) {
  expect_the_same_gemma4("gemma4");
}

TEST(gguf_of_gemma4, is_of_a_model_that_sees_pictures_so_that_adapters_are_named_by_it) {
  const model_files folder = open_model(golden / "gemma4");
  test::temp_folder made;
  made.write("model.gguf", gguf_of(gemma4_metadata(folder.config), gemma4_tensors(folder)));
  EXPECT_TRUE(open_model(made.path() / "model.gguf").config.file.sees_pictures);
}

TEST(gguf_of_gemma4, may_bring_numbers_of_tokens_and_share_keys) {
  expect_the_same_gemma4("gemma4-small");
}

TEST(gguf_of_gemma4, may_have_experts_with_gates_and_ups_in_one_tensor) {
  expect_the_same_gemma4("gemma4-moe");
}

TEST(gguf_of_gemma4, may_have_keys_where_layers_share_them) {
  const model_files folder = open_model(golden / "gemma4-small");
  converted_tensors made = gemma4_tensors(folder);
  for (const std::string part : {"attn_k", "attn_v", "attn_k_norm"})
    made["blk.2." + part + ".weight"] = made["blk.0." + part + ".weight"];
  expect_golden_logits(gguf_of(gemma4_metadata(folder.config), made), "gemma4-small");
}

TEST(gguf_of_gemma4, may_have_experts_with_gates_and_ups_apart) {
  const model_files folder = open_model(golden / "gemma4-moe");
  converted_tensors made = gemma4_tensors(folder);
  for (const std::string layer : {"blk.0.", "blk.1."}) {
    const converted_tensor both = made[layer + "ffn_gate_up_exps.weight"];
    const auto half = static_cast<std::ptrdiff_t>(both.sizes[0] * both.sizes[1] / 2);
    for (const int which : {0, 1}) {
      converted_tensor& one = made[layer + (which ? "ffn_up_exps.weight" : "ffn_gate_exps.weight")];
      one.sizes = {both.sizes[0], both.sizes[1] / 2, both.sizes[2]};
      for (auto at = both.values.begin() + which * half; at < both.values.end(); at += 2 * half)
        one.values.insert(one.values.end(), at, at + half);
    }
    made.erase(layer + "ffn_gate_up_exps.weight");
  }
  expect_golden_logits(gguf_of(gemma4_metadata(folder.config), made), "gemma4-moe");
}

}  // namespace
}  // namespace troupe
