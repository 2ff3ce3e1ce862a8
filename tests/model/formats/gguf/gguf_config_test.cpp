#include <cmath>

#include <gmock/gmock.h>

#include "model/formats/gguf/gguf.hpp"
#include "model/formats/gguf/gguf_config.hpp"
#include "model/formats/gguf/gguf_families.hpp"
#include "model/formats/model_config.hpp"
#include "tests/model/formats/gguf/gguf_builder.hpp"

namespace troupe {
namespace {

using test::refusal;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

test::gguf_builder gguf_of(const std::string& arch, const std::vector<std::string>& tokens = {"a", "b", "c", "d"},
                           std::uint32_t layers = 2) {
  test::gguf_builder file;
  const auto key = [&](const std::string& name) { return arch + "." + name; };
  file.string("general.architecture", arch).u32(key("block_count"), layers).u32(key("embedding_length"), 8);
  file.u32(key("feed_forward_length"), 12).u32(key("attention.head_count"), 4).u32(key("context_length"), 64);
  if (arch == "gpt2")
    file.f32(key("attention.layer_norm_epsilon"), 1e-5f);
  else
    file.u32(key("attention.head_count_kv"), 2).f32(key("attention.layer_norm_rms_epsilon"), 1e-5f);
  file.strings("tokenizer.ggml.tokens", tokens).u32("tokenizer.ggml.eos_token_id", 3);
  return file;
}

model_config from_gguf(const test::gguf_builder& builder) {
  gguf_file file;
  const auto bytes = builder.build();
  parse_gguf(test::bytes_of(bytes), "x.gguf", file);
  return config_from_gguf(file);
}

/// Of the file, and of what a folder that was quantized from it keeps.
std::vector<model_config> with_and_without_tensors(const test::gguf_builder& builder) {
  gguf_file file, bare;
  const auto bytes = builder.build();
  parse_gguf(test::bytes_of(bytes), "x.gguf", file);
  const auto bare_bytes = metadata_only_gguf(file);
  parse_gguf(test::bytes_of(bare_bytes), "metadata.gguf", bare);
  return {config_from_gguf(file), config_from_gguf(bare)};
}

TEST(gguf_config, reads_the_usual_keys) {
  auto file = gguf_of("llama");
  file.f32("llama.rope.freq_base", 5e5f).u32("tokenizer.ggml.bos_token_id", 1).u32("tokenizer.ggml.eot_token_id", 2);
  file.string("llama.rope.scaling.type", "linear").f32("llama.rope.scaling.factor", 4);
  const auto config = from_gguf(file);
  EXPECT_EQ(config.family, "llama");
  EXPECT_EQ(config.vocab_size, 4);
  EXPECT_EQ(config.kv_heads, 2);
  EXPECT_EQ(config.head_dim, 2);
  EXPECT_EQ(config.ffn, 12);
  EXPECT_EQ(config.rope.theta, 5e5);
  EXPECT_EQ(config.rope.scaling, rope_scaling::linear);
  EXPECT_EQ(config.rope.factor, 4.0);
  EXPECT_THAT(config.eos_tokens, ElementsAre(3, 2));
  EXPECT_EQ(config.bos_token, 1);
}

TEST(gguf_config, answers_end_with_tokens_that_chat_models_are_known_to_end_with) {
  const auto file = gguf_of("qwen2", {"a", "<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|eom_id|>"});
  EXPECT_THAT(from_gguf(file).eos_tokens, ElementsAre(3, 1, 4)) << "the one that the file names is the first";
  const auto alike = gguf_of("qwen2", {"<|end|>", "<|end|>", "<|end|>", "b"});
  EXPECT_THAT(from_gguf(alike).eos_tokens, ElementsAre(3, 0)) << "however many are called so";
}

test::gguf_builder delta_gguf(const std::string& arch, std::uint32_t layers = 4) {
  auto file = gguf_of(arch, {"a", "b", "c", "d"}, layers);
  file.u32(arch + ".ssm.conv_kernel", 4).u32(arch + ".ssm.state_size", 16).u32(arch + ".ssm.group_count", 2);
  file.u32(arch + ".ssm.time_step_rank", 4);
  return file;
}

TEST(gguf_config, linear_attention_has_its_sizes_under_the_names_of_other_states) {
  for (const std::string arch : {"qwen35", "qwen3next"}) {
    const auto config = from_gguf(delta_gguf(arch).u32(arch + ".ssm.inner_size", 128));
    EXPECT_EQ(config.delta.value_dim, 32);
    EXPECT_EQ(config.delta.key_head_of(2), arch == "qwen35" ? 0 : 1) << arch;
    EXPECT_TRUE(config.delta.has_rates && config.attention_gate);
    using enum mixer_kind;
    EXPECT_THAT(config.mixers, ElementsAre(delta, delta, delta, attention));
  }
  EXPECT_THAT(refusal([] { from_gguf(delta_gguf("qwen35").u32("qwen35.ssm.inner_size", 130)); }),
              HasSubstr("\"qwen35.ssm.inner_size\" is 130, which 4 heads cannot share evenly"));
}

TEST(gguf_config, layers_of_qwen35_that_predict_several_tokens_are_left_out) {
  auto file = delta_gguf("qwen35", 5).u32("qwen35.ssm.inner_size", 64).u32("qwen35.nextn_predict_layers", 1);
  const auto config = from_gguf(file.u32("qwen35.full_attention_interval", 2));
  EXPECT_EQ(config.layers, 4);
  EXPECT_EQ(config.mixers.size(), 4u);
  EXPECT_EQ(config.mixer_of(1), mixer_kind::attention);
}

TEST(gguf_config, layers_of_lfm2_that_do_not_attend_have_no_heads_of_keys) {
  const auto listed = [](const std::vector<std::uint32_t>& heads) {
    test::gguf_builder file;
    const auto u32 = [&](const std::string& name, std::uint32_t value) { file.u32("lfm2." + name, value); };
    file.string("general.architecture", "lfm2").f32("lfm2.attention.layer_norm_rms_epsilon", 1e-5f);
    u32("block_count", 3), u32("embedding_length", 32), u32("feed_forward_length", 12), u32("context_length", 64);
    u32("attention.head_count", 4), u32("shortconv.l_cache", 3), u32("vocab_size", 8);
    return file.u32s("lfm2.attention.head_count_kv", heads);
  };
  using enum mixer_kind;
  const auto config = from_gguf(listed({0, 2, 0}));
  EXPECT_THAT(config.mixers, ElementsAre(convolution, attention, convolution));
  EXPECT_EQ(config.kv_heads, 2);
  EXPECT_EQ(config.convolved_rows, 3);
  EXPECT_THAT(refusal([&] { from_gguf(listed({0, 2})); }), HasSubstr("has 2 entries for 3 layers"));
  EXPECT_THAT(refusal([&] { from_gguf(listed({1, 2, 0})); }), HasSubstr("has 2 and 1: other numbers than one and 0"));
}

TEST(gguf_config, a_rope_factor_without_a_type_is_linear) {
  const auto config = from_gguf(gguf_of("llama").f32("llama.rope.scaling.factor", 4));
  EXPECT_EQ(config.rope.scaling, rope_scaling::linear);
  EXPECT_EQ(config.rope.factor, 4.0);
  const auto none = gguf_of("llama").string("llama.rope.scaling.type", "none").f32("llama.rope.scaling.factor", 4);
  EXPECT_EQ(from_gguf(none).rope.scaling, rope_scaling::none);
}

test::gguf_builder yarn_gguf() {
  return gguf_of("llama").string("llama.rope.scaling.type", "yarn").f32("llama.rope.scaling.factor", 4);
}

TEST(gguf_config, yarn_is_read_with_all_its_keys) {
  const auto usual = from_gguf(yarn_gguf());
  EXPECT_EQ(usual.rope.scaling, rope_scaling::yarn);
  EXPECT_EQ(usual.rope.factor, 4.0);
  EXPECT_EQ(usual.rope.original_context, 64);
  EXPECT_EQ(usual.context, 256);
  EXPECT_TRUE(usual.rope.yarn.beta_fast == 32 && usual.rope.yarn.beta_slow == 1 && usual.rope.yarn.truncate);
  auto file = yarn_gguf().u32("llama.rope.scaling.original_context_length", 8);
  file.f32("llama.rope.scaling.attn_factor", 1.5f).f32("llama.rope.scaling.yarn_beta_fast", 16);
  file.f32("llama.rope.scaling.yarn_beta_slow", 2).f32("llama.rope.scaling.yarn_log_multiplier", 0);
  const auto own = from_gguf(file);
  EXPECT_EQ(own.rope.original_context, 8);
  EXPECT_EQ(own.context, 64);
  EXPECT_EQ(own.rope.yarn.attention_factor, 1.5);
  EXPECT_EQ(own.rope.yarn.mscale, 1) << "on top of the stretch";
  EXPECT_TRUE(own.rope.yarn.beta_fast == 16 && own.rope.yarn.beta_slow == 2);
}

TEST(gguf_config, learns_the_rest_from_the_tensors_and_keeps_it_without_them) {
  auto builder = gguf_of("llama");
  builder.floats("token_embd.weight", {8, 5}).floats("output.weight", {8, 5}).floats("blk.0.attn_q.bias", {8});
  builder.floats("rope_freqs.weight", {1}, 8.0f);
  for (const auto& config : with_and_without_tensors(builder)) {
    EXPECT_EQ(config.vocab_size, 5);
    EXPECT_FALSE(config.tied_embeddings);
    EXPECT_TRUE(config.qkv_bias);
    EXPECT_FALSE(config.out_bias);
    EXPECT_THAT(config.rope.frequency_divisors, ElementsAre(8.0f));
  }
}

TEST(gguf_config, families_differ_as_they_should) {
  EXPECT_TRUE(from_gguf(gguf_of("qwen2")).qkv_bias);
  EXPECT_TRUE(from_gguf(gguf_of("qwen3").u32("qwen3.attention.key_length", 16)).qk_norm);
  EXPECT_EQ(from_gguf(gguf_of("qwen3").u32("qwen3.attention.key_length", 16)).head_dim, 16);
  const auto gpt2 = from_gguf(gguf_of("gpt2"));
  EXPECT_EQ(gpt2.position, position_kind::learned);
  EXPECT_EQ(gpt2.kv_heads, 4);
  EXPECT_FALSE(gpt2.gated_mlp);
  EXPECT_THAT(from_gguf(gguf_of("llama").u32("llama.attention.sliding_window", 9)).windows, ElementsAre(9, 9));
}

TEST(gguf_config, phi3_has_longrope_by_its_tensors_and_keeps_it_without_them) {
  auto builder = gguf_of("phi3").u32("phi3.attention.key_length", 8).u32("phi3.rope.dimension_count", 6);
  builder.u32("phi3.rope.scaling.original_context_length", 16).f32("phi3.rope.scaling.attn_factor", 1.25f);
  builder.floats("rope_factors_long.weight", {3}, 4.0f).floats("rope_factors_short.weight", {3}, 1.0f);
  for (const auto& config : with_and_without_tensors(builder)) {
    EXPECT_EQ(config.turned_dim(), 6);
    EXPECT_EQ(config.rope.scaling, rope_scaling::longrope);
    EXPECT_TRUE(config.rope.original_context == 16 && config.rope.factor == 4 && config.rope.length == 1.25);
    EXPECT_THAT(config.rope.frequency_divisors, ElementsAre(4.0f, 5.0f, 6.0f));
    EXPECT_THAT(config.rope.short_divisors, ElementsAre(1.0f, 2.0f, 3.0f));
  }
}

TEST(gguf_config, gemma3_has_windows_and_ropes_by_layer) {
  using enum layer_rope;
  const auto gemma = [] { return gguf_of("gemma3").u32("gemma3.attention.sliding_window", 9); };
  const auto usual = from_gguf(gemma());
  EXPECT_THAT(usual.windows, ElementsAre(9, 9));
  EXPECT_THAT(usual.layer_ropes, ElementsAre(local, local));
  EXPECT_TRUE(usual.output_norms && usual.qk_norm && usual.score_dim == 0);
  EXPECT_EQ(usual.local_rope.theta, 1e4);
  auto own = gemma().u32("gemma3.attention.sliding_window_pattern", 2).f32("gemma3.rope.freq_base_swa", 7e3f);
  EXPECT_THAT(from_gguf(own).windows, ElementsAre(9, 0));
  EXPECT_THAT(from_gguf(own).layer_ropes, ElementsAre(local, global));
  EXPECT_EQ(from_gguf(own).local_rope.theta, 7e3);
  const auto listed = gemma().booleans("gemma3.attention.sliding_window_pattern", {false, true});
  EXPECT_THAT(from_gguf(listed).windows, ElementsAre(0, 9));
  const auto short_list = gemma().booleans("gemma3.attention.sliding_window_pattern", {true});
  EXPECT_THAT(refusal([&] { from_gguf(short_list); }), HasSubstr("1 entries for 2 layers"));
}

TEST(gguf_config, every_fourth_layer_of_smollm3_does_not_turn_its_heads) {
  using enum layer_rope;
  EXPECT_THAT(from_gguf(gguf_of("smollm3", {"a", "b", "c", "d"}, 5)).layer_ropes,
              ElementsAre(global, global, global, none, global));
}

/// What is added to the rows is multiplied by a factor: instead the rows are over it from the beginning.
TEST(gguf_config, granite_multiplies_by_factors) {
  auto file = gguf_of("granite").f32("granite.logit_scale", 8).f32("granite.embedding_scale", 12);
  file.f32("granite.residual_scale", 0.25f).f32("granite.attention.scale", 0.125f);
  const auto config = from_gguf(file);
  EXPECT_FLOAT_EQ(config.embedding_factor, 48);
  EXPECT_FLOAT_EQ(config.norm_eps, 16 * from_gguf(gguf_of("llama")).norm_eps);
  EXPECT_EQ(config.score_divisor(), 8);
  EXPECT_EQ(config.logit_factor, 0.125f);
  EXPECT_TRUE(config.layer_ropes.empty());
  const auto bare = from_gguf(gguf_of("granite").f32("granite.logit_scale", 2));
  EXPECT_TRUE(bare.embedding_factor == 1 && bare.score_divisor() == std::sqrt(static_cast<float>(bare.head_dim)));
  const auto unturned =
      gguf_of("granite").f32("granite.logit_scale", 2).key("granite.rope.scaling.finetuned", 7, std::string(1, '\0'));
  EXPECT_THAT(from_gguf(unturned).layer_ropes, ElementsAre(layer_rope::none, layer_rope::none));
  EXPECT_THAT(refusal([&] { from_gguf(gguf_of("granite")); }), HasSubstr("granite.logit_scale"));
}

TEST(gguf_config, olmo3_is_olmo2_with_windows_and_ropes_by_layer) {
  using enum layer_rope;
  const auto two = from_gguf(gguf_of("olmo2"));
  EXPECT_TRUE(!two.input_norms && two.output_norms && two.joint_qk_norm && two.windows.empty());
  EXPECT_EQ(two.q_norm_size(0), 8);
  EXPECT_EQ(two.k_norm_size(0), 4);
  auto file = gguf_of("olmo2", {"a", "b", "c", "d"}, 4).u32("olmo2.attention.sliding_window", 9);
  file.f32("olmo2.rope.freq_base", 5e5f).string("olmo2.rope.scaling.type", "yarn");
  const auto three = from_gguf(file.f32("olmo2.rope.scaling.factor", 4));
  EXPECT_THAT(three.windows, ElementsAre(9, 9, 9, 0));
  EXPECT_THAT(three.layer_ropes, ElementsAre(local, local, local, global));
  EXPECT_TRUE(three.rope.scaling == rope_scaling::yarn && three.local_rope.scaling == rope_scaling::none);
  EXPECT_EQ(three.local_rope.theta, 5e5);
  const auto listed = file.booleans("olmo2.attention.sliding_window_pattern", {false, true, true, false});
  EXPECT_THAT(from_gguf(listed).windows, ElementsAre(0, 9, 9, 0));
}

TEST(gguf_config, gemma2_caps_scores_and_logits) {
  const auto usual = from_gguf(gguf_of("gemma2"));
  EXPECT_TRUE(usual.score_cap == 50 && usual.logit_cap == 30 && usual.output_norms && !usual.qk_norm);
  EXPECT_THAT(usual.windows, ElementsAre(4096, 0));
  EXPECT_TRUE(usual.layer_ropes.empty() && usual.score_dim == 0);
  auto own = gguf_of("gemma2").f32("gemma2.attn_logit_softcapping", 5).f32("gemma2.final_logit_softcapping", 3);
  own.u32("gemma2.attention.sliding_window", 9);
  EXPECT_TRUE(from_gguf(own).score_cap == 5 && from_gguf(own).logit_cap == 3);
  EXPECT_THAT(from_gguf(own).windows, ElementsAre(9, 0));
  EXPECT_EQ(from_gguf(gguf_of("gemma2", {"a", "b", "c", "d"}, 46)).score_dim, 2) << "27B";
  const auto third = gguf_of("gemma3").u32("gemma3.attention.sliding_window", 9);
  EXPECT_TRUE(from_gguf(third).score_cap == 0 && from_gguf(third).logit_cap == 0);
}

TEST(gguf_config, mixtures_are_llama_or_qwen3moe) {
  const auto mixtral = from_gguf(gguf_of("llama").u32("llama.expert_count", 8).u32("llama.expert_used_count", 2));
  EXPECT_TRUE(mixtral.experts.count == 8 && mixtral.experts.taken == 2 && mixtral.ffn == 12 &&
              mixtral.experts.whole_shares);
  auto file = gguf_of("qwen3moe").u32("qwen3moe.expert_count", 16).u32("qwen3moe.expert_used_count", 4);
  const auto qwen = from_gguf(file.u32("qwen3moe.expert_feed_forward_length", 5));
  EXPECT_TRUE(qwen.experts.count == 16 && qwen.experts.taken == 4 && qwen.ffn == 5 && qwen.qk_norm &&
              qwen.experts.whole_shares);
}

TEST(gguf_config, qwen2moe_has_an_mlp_beside_the_experts) {
  auto file = gguf_of("qwen2moe").u32("qwen2moe.expert_count", 6).u32("qwen2moe.expert_used_count", 2);
  const auto usual = from_gguf(file.u32("qwen2moe.expert_feed_forward_length", 5));
  EXPECT_TRUE(usual.ffn == 5 && usual.experts.shared_ffn == 12 && usual.experts.shared_gate &&
              !usual.experts.whole_shares && usual.qkv_bias);
  EXPECT_EQ(from_gguf(file.u32("qwen2moe.expert_shared_feed_forward_length", 20)).experts.shared_ffn, 20);
}

TEST(gguf_config, glm_has_layers_without_experts_and_one_that_predicts) {
  auto file = gguf_of("glm4moe", {"a", "b", "c", "d"}, 4).u32("glm4moe.expert_count", 6);
  file.u32("glm4moe.expert_used_count", 2).u32("glm4moe.expert_feed_forward_length", 5);
  file.u32("glm4moe.expert_shared_count", 2).u32("glm4moe.leading_dense_block_count", 1);
  file.u32("glm4moe.nextn_predict_layers", 1).f32("glm4moe.expert_weights_scale", 2.5f);
  const auto config = from_gguf(file.key("glm4moe.expert_weights_norm", 7, std::string(1, '\1')));
  EXPECT_EQ(config.layers, 3);
  EXPECT_THAT(config.experts.dense_layers, ElementsAre(true, false, false));
  EXPECT_TRUE(config.experts.dense_ffn == 12 && config.experts.shared_ffn == 10 && config.ffn == 5 &&
              config.experts.share_factor == 2.5f);
  EXPECT_TRUE(config.experts.sigmoid_shares && config.experts.choice_bias && config.experts.whole_shares &&
              !config.experts.shared_gate);
  EXPECT_THAT(refusal([&] { from_gguf(file.u32("glm4moe.expert_gating_func", 1)); }), HasSubstr("expert_gating_func"));
  EXPECT_THAT(refusal([&] { from_gguf(file.u32("glm4moe.expert_shared_count", 4000)); }), HasSubstr("shared_count"));
}

TEST(gguf_config, glm_and_ernie_turn_neighbours) {
  const auto glm =
      from_gguf(gguf_of("chatglm").u32("chatglm.attention.key_length", 4).u32("chatglm.rope.dimension_count", 2));
  EXPECT_TRUE(glm.family == "glm" && glm.file.turns_neighbours && glm.rotary_dim == 2 && !glm.output_norms);
  EXPECT_FALSE(glm.file.sees_pictures);
  const auto glm4 = from_gguf(gguf_of("glm4", {"a", "<|observation|>", "c", "d"}));
  EXPECT_THAT(glm4.eos_tokens, ElementsAre(3, 1)) << "a tool's answer follows";
  EXPECT_TRUE(glm4.file.turns_neighbours && glm4.output_norms && glm4.input_norms);
  EXPECT_TRUE(from_gguf(gguf_of("ernie4_5")).file.turns_neighbours);
  EXPECT_FALSE(from_gguf(gguf_of("llama")).file.turns_neighbours);
  EXPECT_THAT(refusal([&] { from_gguf(gguf_of("glm4").u32("glm4.rope.dimension_sections", 1)); }),
              HasSubstr("\"glm4.rope.dimension_sections\" says that the model sees pictures"));
}

TEST(gguf_config, cohere_has_an_mlp_beside_attention_and_layers_that_do_not_turn) {
  auto file = gguf_of("cohere2", {"a", "b", "c", "d"}, 5).f32("cohere2.attention.layer_norm_epsilon", 1e-3f);
  const auto second = from_gguf(file.f32("cohere2.logit_scale", 0.25f).u32("cohere2.attention.sliding_window", 9));
  EXPECT_TRUE(second.parallel && second.file.turns_neighbours && second.norm == norm_kind::layer && !second.norm_bias);
  EXPECT_TRUE(second.logit_factor == 0.25f && second.norm_eps == 1e-3f);
  EXPECT_THAT(second.windows, ElementsAre(9, 9, 9, 0, 9));
  EXPECT_THAT(second.layer_ropes, ElementsAre(layer_rope::global, layer_rope::global, layer_rope::global,
                                              layer_rope::none, layer_rope::global));
  auto first = gguf_of("command-r").f32("command-r.attention.layer_norm_epsilon", 1e-3f);
  EXPECT_THAT(refusal([&] { from_gguf(first); }), HasSubstr("command-r.logit_scale"));
  const auto config = from_gguf(first.f32("command-r.logit_scale", 0.5f));
  EXPECT_TRUE(config.family == "cohere" && config.parallel && config.windows.empty() && config.layer_ropes.empty());
}

TEST(gguf_config, exaone_has_a_window_in_three_of_four_layers_or_in_none) {
  EXPECT_TRUE(from_gguf(gguf_of("exaone4")).layer_ropes.empty());
  const auto with_window =
      from_gguf(gguf_of("exaone4", {"a", "b", "c", "d"}, 4).u32("exaone4.attention.sliding_window", 9));
  EXPECT_THAT(with_window.windows, ElementsAre(9, 9, 9, 0));
  EXPECT_EQ(with_window.rope_of(3), layer_rope::none);
}

TEST(gguf_config, ernies_and_minimaxs_mixtures_choose_by_biases) {
  auto ernie = gguf_of("ernie4_5-moe").u32("ernie4_5-moe.expert_count", 6).u32("ernie4_5-moe.expert_used_count", 2);
  ernie.u32("ernie4_5-moe.expert_feed_forward_length", 24).u32("ernie4_5-moe.expert_shared_feed_forward_length", 48);
  const auto config = from_gguf(ernie.u32("ernie4_5-moe.leading_dense_block_count", 1));
  EXPECT_TRUE(config.experts.choice_bias && !config.experts.sigmoid_shares && config.experts.shared_ffn == 48);
  EXPECT_TRUE(!config.has_experts(0) && config.has_experts(1) && config.file.turns_neighbours);
  EXPECT_THAT(refusal([&] { from_gguf(ernie.u32("ernie4_5-moe.interleave_moe_layer_step", 2)); }),
              HasSubstr("interleave_moe_layer_step"));
  auto minimax = gguf_of("minimax-m2").u32("minimax-m2.expert_count", 6).u32("minimax-m2.expert_used_count", 2);
  const auto second =
      from_gguf(minimax.u32("minimax-m2.attention.key_length", 4).u32("minimax-m2.rope.dimension_count", 2));
  EXPECT_TRUE(second.experts.sigmoid_shares && second.joint_qk_norm && second.rotary_dim == 2);
}

TEST(gguf_config, of_models_that_see_pictures_the_language_model_is_read) {
  EXPECT_TRUE(from_gguf(gguf_of("qwen2vl")).family == "qwen2" && from_gguf(gguf_of("qwen2vl")).file.sees_pictures);
  EXPECT_FALSE(from_gguf(gguf_of("qwen2")).file.sees_pictures);
  const auto third = from_gguf(gguf_of("qwen3vl"));
  EXPECT_TRUE(third.family == "qwen3" && third.qk_norm);
  auto mixture = gguf_of("qwen3vlmoe").u32("qwen3vlmoe.expert_count", 6).u32("qwen3vlmoe.expert_used_count", 2);
  const auto fourth = from_gguf(mixture);
  EXPECT_TRUE(fourth.family == "qwen3moe" && fourth.file.sees_pictures && fourth.experts.count == 6 &&
              fourth.experts.whole_shares);
}

TEST(gguf_config, files_of_a_family_have_the_names_that_fit_whether_it_sees_pictures) {
  const auto names = [](const char* family, bool sees_pictures) {
    model_config config;
    config.family = family;
    config.file.sees_pictures = sees_pictures;
    return detail::gguf_names_of(config);
  };
  EXPECT_THAT(names("qwen2", false), ElementsAre("qwen2"));
  EXPECT_THAT(names("qwen2", true), ElementsAre("qwen2vl"));
  EXPECT_THAT(names("qwen35", false), ElementsAre("qwen35")) << "which is that of both";
  EXPECT_THAT(names("gemma3", true), ElementsAre("gemma3"));
  EXPECT_THAT(names("deepseek", false), ElementsAre("deepseek2"));
  EXPECT_THAT(names("nemotronh", false), ElementsAre("nemotron_h", "nemotron_h_moe"));
  EXPECT_THAT(names("mixtral", false), ElementsAre()) << "of which converters make llamas";
}

TEST(gguf_config, olmoe_and_granite_are_mixtures_too) {
  const auto olmoe = from_gguf(gguf_of("olmoe").u32("olmoe.expert_count", 6).u32("olmoe.expert_used_count", 2));
  EXPECT_TRUE(olmoe.joint_qk_norm && olmoe.experts.count == 6 && !olmoe.experts.whole_shares && olmoe.ffn == 12);
  auto file = gguf_of("granitemoe").u32("granitemoe.expert_count", 6).u32("granitemoe.expert_used_count", 2);
  const auto granite = from_gguf(file.f32("granitemoe.logit_scale", 8));
  EXPECT_TRUE(granite.experts.count == 6 && granite.experts.whole_shares && granite.logit_factor == 0.125f);
}

TEST(gguf_config, gpt_oss_has_what_its_class_has) {
  const std::vector<std::string> tokens{"<|end|>", "a", "b", "c", "d", "<|return|>", "<|call|>"};
  auto file = gguf_of("gpt-oss", tokens).u32("gpt-oss.attention.sliding_window", 9);
  file.u32("gpt-oss.expert_count", 8).u32("gpt-oss.expert_used_count", 4).u32("gpt-oss.expert_feed_forward_length", 6);
  file.string("gpt-oss.rope.scaling.type", "yarn").f32("gpt-oss.rope.scaling.factor", 32);
  const auto config = from_gguf(file.u32("gpt-oss.rope.scaling.original_context_length", 4));
  EXPECT_TRUE(config.attention_sinks && config.qkv_bias && config.out_bias && config.mlp_bias);
  EXPECT_TRUE(config.experts.count == 8 && config.experts.taken == 4 && config.ffn == 6 && config.experts.whole_shares);
  EXPECT_TRUE(config.activation == activation_kind::clamped_silu && config.activation_limit == 7);
  EXPECT_THAT(config.windows, ElementsAre(9, 0));
  EXPECT_TRUE(config.rope.scaling == rope_scaling::yarn && !config.rope.yarn.truncate);
  EXPECT_THAT(config.eos_tokens, testing::IsSupersetOf({5, 6}));
  EXPECT_THAT(config.eos_tokens, testing::Not(testing::Contains(0))) << "a message's end is not the answer's";
}

TEST(gguf_config, refuses_what_it_cannot_run) {
  const auto says = [](const test::gguf_builder& builder) { return refusal([&] { from_gguf(builder); }); };
  EXPECT_THAT(says(gguf_of("bert")), HasSubstr("\"bert\" is not supported"));
  EXPECT_THAT(says(test::gguf_builder()), HasSubstr("general.architecture"));
  EXPECT_THAT(says(test::gguf_builder().string("general.architecture", "llama").string("general.type", "adapter")),
              HasSubstr("is an adapter: name the model that it adapts"));
  EXPECT_THAT(says(test::gguf_builder().string("general.architecture", "llama")), HasSubstr("llama.embedding_length"));
  EXPECT_THAT(says(gguf_of("llama").string("llama.rope.scaling.type", "yarn")), HasSubstr("rope.scaling.factor"));
  EXPECT_THAT(says(yarn_gguf().f32("llama.rope.scaling.yarn_log_multiplier", 1)), HasSubstr("yarn_log_multiplier"));
  EXPECT_THAT(says(yarn_gguf().f32("llama.rope.scaling.yarn_ext_factor", 0)), HasSubstr("yarn_ext_factor"));
  EXPECT_THAT(says(yarn_gguf().f32("llama.rope.scaling.yarn_beta_fast", 0.5f)), HasSubstr("beta_fast 0.5"));
  EXPECT_THAT(says(gguf_of("llama").string("llama.rope.scaling.type", "longrope")), HasSubstr("\"longrope\""));
  EXPECT_THAT(
      says(gguf_of("llama").u32("llama.attention.sliding_window", 9).u32("llama.attention.sliding_window_pattern", 2)),
      HasSubstr("sliding_window_pattern"));
  EXPECT_THAT(says(gguf_of("llama").u32("llama.rope.dimension_count", 1)), HasSubstr("rope.dimension_count"));
  EXPECT_THAT(says(gguf_of("llama").u32("llama.expert_count", 8)), HasSubstr("llama.expert_used_count"));
  EXPECT_THAT(says(gguf_of("llama").u32("llama.expert_count", 8).u32("llama.expert_used_count", 9)),
              HasSubstr("experts for a token is 9"));
  EXPECT_THAT(says(gguf_of("phi3").u32("phi3.expert_count", 8).u32("phi3.expert_used_count", 2)),
              HasSubstr("\"phi3.expert_count\" is 8"));
  EXPECT_THAT(says(gguf_of("phi3").floats("rope_factors_short.weight", {1}, 2)), HasSubstr("longrope needs divisors"));
  EXPECT_THAT(says(gguf_of("llama").u32("llama.attention.value_length", 8)), HasSubstr("different length"));
  EXPECT_THAT(says(gguf_of("llama").string("llama.rope.freq_base", "x")), HasSubstr("rope.freq_base"));
  EXPECT_THAT(says(gguf_of("llama").floats("rope_freqs.weight", {3})), HasSubstr("rope frequency divisors"));
  EXPECT_THAT(says(gguf_of("llama").floats("rope_freqs.weight", {1}, -1)), HasSubstr("divisor"));
  EXPECT_THAT(says(gguf_of("llama").floats("rope_freqs.weight", {1, 1})), HasSubstr("rope_freqs.weight"));
}

}  // namespace
}  // namespace troupe
