// GGUF files of DeepSeek, made of the golden folders as llama.cpp's converter makes them.
#include <array>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/to_size.hpp"
#include "model/formats/model_files.hpp"
#include "tests/model/arch/golden_gguf.hpp"

namespace troupe {
namespace {

// Longer names before those that they contain.
const std::array<renamed, 20> deepseek_names = {{{"model.embed_tokens", "token_embd"},
                                                 {"model.norm", "output_norm"},
                                                 {"lm_head", "output"},
                                                 {"model.layers.", "blk."},
                                                 {"input_layernorm", "attn_norm"},
                                                 {"self_attn.q_a_proj", "attn_q_a"},
                                                 {"self_attn.q_b_proj", "attn_q_b"},
                                                 {"self_attn.q_proj", "attn_q"},
                                                 {"self_attn.kv_a_proj_with_mqa", "attn_kv_a_mqa"},
                                                 {"self_attn.o_proj", "attn_output"},
                                                 {"self_attn.q_a_layernorm", "attn_q_a_norm"},
                                                 {"self_attn.kv_a_layernorm", "attn_kv_a_norm"},
                                                 {"post_attention_layernorm", "ffn_norm"},
                                                 {"mlp.gate.e_score_correction_bias", "exp_probs_b.bias"},
                                                 {"mlp.gate.weight", "ffn_gate_inp.weight"},
                                                 {"mlp.shared_experts.gate_proj", "ffn_gate_shexp"},
                                                 {"mlp.shared_experts.up_proj", "ffn_up_shexp"},
                                                 {"mlp.shared_experts.down_proj", "ffn_down_shexp"},
                                                 {"mlp.gate_proj", "ffn_gate"},
                                                 {"mlp.up_proj", "ffn_up"}}};

test::gguf_builder deepseek_metadata(const model_config& config, bool says_gating = true) {
  test::gguf_builder file;
  const auto u32 = [&](const std::string& key, std::int64_t value) {
    file.u32("deepseek2." + key, static_cast<std::uint32_t>(value));
  };
  const latent_config& latent = config.latent;
  file.string("general.architecture", "deepseek2").f32("deepseek2.attention.layer_norm_rms_epsilon", config.norm_eps);
  file.f32("deepseek2.rope.freq_base", static_cast<float>(config.rope.theta));
  u32("block_count", config.layers), u32("embedding_length", config.hidden), u32("context_length", config.context);
  u32("attention.head_count", config.heads), u32("attention.head_count_kv", 1);
  u32("attention.key_length", latent.row()), u32("attention.value_length", latent.rank);
  u32("attention.key_length_mla", latent.query()), u32("attention.value_length_mla", latent.value);
  u32("attention.kv_lora_rank", latent.rank), u32("rope.dimension_count", latent.turned);
  if (latent.query_rank > 0) u32("attention.q_lora_rank", latent.query_rank);
  const expert_config& experts = config.experts;
  u32("feed_forward_length", experts.dense_layers.empty() ? 40 : experts.dense_ffn);
  u32("leading_dense_block_count", experts.dense_layers.empty() ? 0 : 1);
  u32("expert_feed_forward_length", config.ffn), u32("expert_shared_count", experts.shared_ffn / config.ffn);
  u32("expert_count", experts.count), u32("expert_used_count", experts.taken);
  u32("expert_group_count", experts.groups), u32("expert_group_used_count", experts.groups_taken);
  if (says_gating) u32("expert_gating_func", experts.sigmoid_shares ? 2 : 1);
  file.f32("deepseek2.expert_weights_scale", experts.share_factor);
  file.key("deepseek2.expert_weights_norm", 7, std::string(1, experts.whole_shares ? 1 : 0));
  if (config.rope.scaling != rope_scaling::yarn) return file;
  file.string("deepseek2.rope.scaling.type", "yarn");
  file.f32("deepseek2.rope.scaling.factor", static_cast<float>(config.rope.factor));
  u32("rope.scaling.original_context_length", config.rope.original_context);
  file.f32("deepseek2.rope.scaling.yarn_beta_fast", static_cast<float>(config.rope.yarn.beta_fast));
  file.f32("deepseek2.rope.scaling.yarn_beta_slow", static_cast<float>(config.rope.yarn.beta_slow));
  file.f32("deepseek2.rope.scaling.yarn_log_multiplier", static_cast<float>(0.1 * config.rope.yarn.mscale_all_dim));
  return file;
}

/// What heads make of the row that is kept: that for queries the other way round.
void add_heads(const converted_tensor& both, const model_config& config, const std::string& layer,
               converted_tensors& made) {
  const std::size_t rank = to_size(config.latent.rank), plain = to_size(config.latent.plain);
  const std::size_t value = to_size(config.latent.value), heads = to_size(config.heads);
  converted_tensor keys{{plain, rank, heads}, {}}, values{{rank, value, heads}, {}};
  for (std::size_t head = 0; head < heads; ++head) {
    const float* first = both.values.data() + head * (plain + value) * rank;
    for (std::size_t r = 0; r < rank; ++r)
      for (std::size_t n = 0; n < plain; ++n) keys.values.push_back(first[n * rank + r]);
    values.values.insert(values.values.end(), first + plain * rank, first + (plain + value) * rank);
  }
  made[layer + "attn_k_b.weight"] = keys;
  made[layer + "attn_v_b.weight"] = values;
}

converted_tensors deepseek_tensors(const model_files& folder) {
  converted_tensors made;
  for (const auto& [name, tensor] : folder.tensors.tensors) {
    if (name.find(".experts.") != name.npos) continue;
    if (const auto heads = name.find("self_attn.kv_b_proj"); heads != name.npos)
      add_heads(as_floats(tensor), folder.config, with_names(name.substr(0, heads), deepseek_names), made);
    else
      made[with_names(name, std::array{renamed{"mlp.down_proj", "ffn_down"}})] = as_floats(tensor);
  }
  converted_tensors named;
  for (auto& [name, tensor] : made) named[with_names(name, deepseek_names)] = std::move(tensor);
  for (std::int64_t layer = 0; layer < folder.config.layers; ++layer) {
    if (!folder.config.has_experts(layer)) continue;
    for (const auto& [theirs, ours] : {std::pair{"gate_proj", "gate"}, {"up_proj", "up"}, {"down_proj", "down"}}) {
      converted_tensor& all = named[fmt::format("blk.{}.ffn_{}_exps.weight", layer, ours)];
      for (std::int64_t e = 0; e < folder.config.experts.count; ++e) {
        const auto one =
            as_floats(*folder.tensors.find(fmt::format("model.layers.{}.mlp.experts.{}.{}.weight", layer, e, theirs)));
        all.sizes = {one.sizes[0], one.sizes[1], to_size(folder.config.experts.count)};
        all.values.insert(all.values.end(), one.values.begin(), one.values.end());
      }
    }
  }
  return named;
}

class gguf_of_deepseek : public testing::TestWithParam<const char*> {};

TEST_P(gguf_of_deepseek, gives_what_the_folder_does) {
  const model_files folder = open_model(golden / GetParam());
  expect_golden_logits(gguf_of(deepseek_metadata(folder.config), deepseek_tensors(folder)), GetParam());
}

TEST_P(gguf_of_deepseek, may_have_what_heads_read_and_give_in_one_tensor_too) {
  const model_files folder = open_model(golden / GetParam());
  converted_tensors made = deepseek_tensors(folder);
  made["blk.0.attn_kv_b.weight"] = as_floats(*folder.tensors.find("model.layers.0.self_attn.kv_b_proj.weight"));
  expect_golden_logits(gguf_of(deepseek_metadata(folder.config), made), GetParam());
}

TEST(gguf_of_glm_lite, need_not_say_that_experts_are_chosen_by_sigmoids) {
  const model_files folder = open_model(golden / "glm4-moe-lite");
  expect_golden_logits(gguf_of(deepseek_metadata(folder.config, false), deepseek_tensors(folder)), "glm4-moe-lite");
}

INSTANTIATE_TEST_SUITE_P(models, gguf_of_deepseek, testing::Values("deepseek2", "deepseek3", "glm4-moe-lite"),
                         [](const auto& info) { return test_name(info.param); });

}  // namespace
}  // namespace troupe
