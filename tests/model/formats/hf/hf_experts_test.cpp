// Mixtures of experts, as config.json describes them.
#include <gmock/gmock.h>

#include "tests/model/formats/hf/hf_config_fixture.hpp"

namespace troupe {
namespace {

using nlohmann::json;
using test::parse;
using test::small;
using test::with;
using ::testing::ElementsAre;

TEST(hf_experts, mixtures_of_experts_say_how_many_there_are_and_are_taken) {
  const json some = {{"num_experts", 6}, {"num_experts_per_tok", 2}, {"moe_intermediate_size", 5}};
  const auto qwen = parse(with(small("qwen3_moe"), some));
  EXPECT_EQ(qwen.family, "qwen3moe");
  EXPECT_TRUE(qwen.experts.count == 6 && qwen.experts.taken == 2 && qwen.ffn == 5);
  EXPECT_TRUE(qwen.qk_norm && !qwen.experts.whole_shares);
  EXPECT_TRUE(parse(with(with(small("qwen3_moe"), some), {{"norm_topk_prob", true}})).experts.whole_shares);
  const auto usual = parse({{"model_type", "qwen3_moe"}, {"head_dim", 128}});
  EXPECT_TRUE(usual.experts.count == 128 && usual.experts.taken == 8 && usual.ffn == 768);
  const auto mixtral = parse({{"model_type", "mixtral"}});
  EXPECT_TRUE(mixtral.experts.count == 8 && mixtral.experts.taken == 2 && mixtral.ffn == 14336 &&
              mixtral.experts.whole_shares);
  EXPECT_TRUE(mixtral.windows.empty() && !mixtral.qkv_bias && mixtral.rope.theta == 1e6);
}

TEST(hf_experts, of_qwen3_vl_take_shares_that_add_up_to_one) {
  const json text =
      with(small("qwen3_vl_moe_text"), {{"head_dim", 4}, {"num_local_experts", 6}, {"num_experts_per_tok", 2}});
  const auto config = parse({{"model_type", "qwen3_vl_moe"}, {"text_config", text}});
  EXPECT_TRUE(config.family == "qwen3moe" && config.file.sees_pictures && config.qk_norm);
  EXPECT_TRUE(config.experts.count == 6 && config.experts.whole_shares);
}

TEST(hf_experts, qwen2_moe_has_an_mlp_beside_the_experts) {
  const auto usual = parse({{"model_type", "qwen2_moe"}});
  EXPECT_TRUE(usual.experts.count == 60 && usual.experts.taken == 4 && usual.ffn == 1408 &&
              !usual.experts.whole_shares);
  EXPECT_TRUE(usual.experts.shared_ffn == 5632 && usual.experts.shared_gate && usual.qkv_bias && !usual.out_bias);
  EXPECT_EQ(usual.mlp_width(0), 5632);
  const auto own = parse(with(small("qwen2_moe"), {{"shared_expert_intermediate_size", 7}, {"qkv_bias", false}}));
  EXPECT_TRUE(own.experts.shared_ffn == 7 && !own.qkv_bias);
}

TEST(hf_experts, layers_of_a_mixture_may_have_no_experts) {
  const auto every_second = parse(with(small("qwen3_moe"), {{"num_hidden_layers", 4}, {"decoder_sparse_step", 2}}));
  EXPECT_THAT(every_second.experts.dense_layers, ElementsAre(true, false, true, false));
  EXPECT_TRUE(every_second.mlp_width(0) == 12 && every_second.mlp_width(1) == 0);
  EXPECT_TRUE(!every_second.has_experts(0) && every_second.has_experts(1));
  const auto listed = parse(with(small("qwen3_moe"), {{"mlp_only_layers", {1}}}));
  EXPECT_THAT(listed.experts.dense_layers, ElementsAre(false, true));
  EXPECT_TRUE(parse(small("qwen3_moe")).experts.dense_layers.empty());
}

TEST(hf_experts, glm_chooses_experts_by_sigmoids_and_turns_half_of_each_head) {
  const auto usual = parse({{"model_type", "glm4_moe"}, {"head_dim", 128}});
  EXPECT_TRUE(usual.experts.count == 128 && usual.experts.taken == 8 && usual.ffn == 1408 &&
              usual.experts.shared_ffn == 1408);
  EXPECT_TRUE(usual.experts.sigmoid_shares && usual.experts.choice_bias && usual.experts.whole_shares &&
              !usual.experts.shared_gate);
  EXPECT_TRUE(usual.rotary_dim == 64 && !usual.qk_norm && !usual.qkv_bias && usual.experts.share_factor == 1.0f);
  EXPECT_TRUE(!usual.has_experts(0) && usual.mlp_width(0) == 10944 && usual.has_experts(1));
  const json more = {{"n_shared_experts", 0}, {"first_k_dense_replace", 0}, {"routed_scaling_factor", 2.5}};
  const auto own =
      parse(with(with(small("glm4_moe"), more), {{"head_dim", 4}, {"attention_bias", true}, {"use_qk_norm", true}}));
  EXPECT_TRUE(own.experts.shared_ffn == 0 && own.experts.dense_layers.empty() && own.experts.share_factor == 2.5f);
  EXPECT_TRUE(own.qkv_bias && !own.out_bias && own.qk_norm);
  const json whole = {{"head_dim", 4}, {"rope_parameters", {{"partial_rotary_factor", 1.0}}}};
  EXPECT_EQ(parse(with(small("glm4_moe"), whole)).rotary_dim, 0);
}

TEST(hf_experts, olmoe_has_norms_over_all_heads_and_experts) {
  const auto config = parse(small("olmoe"));
  EXPECT_TRUE(config.qk_norm && config.joint_qk_norm && config.input_norms && !config.output_norms);
  EXPECT_TRUE(config.experts.count == 64 && config.experts.taken == 8 && config.ffn == 12 &&
              !config.experts.whole_shares);
}

TEST(hf_experts, granite_has_mixtures_and_a_fourth_version) {
  const auto mixture = parse(with(small("granitemoe"), {{"logits_scaling", 8.0}}));
  EXPECT_TRUE(mixture.experts.count == 8 && mixture.experts.taken == 2 && mixture.experts.whole_shares);
  EXPECT_EQ(mixture.logit_factor, 0.125f);
  const json dense = {{"layer_types", {"attention", "attention"}}, {"num_local_experts", 0}, {"logits_scaling", 8.0}};
  const auto fourth = parse(with(with(small("granitemoehybrid"), dense), {{"shared_intermediate_size", 20}}));
  EXPECT_TRUE(fourth.experts.count == 0 && fourth.ffn == 20 && fourth.logit_factor == 0.125f);
  EXPECT_THAT(fourth.layer_ropes, ElementsAre(layer_rope::none, layer_rope::none)) << "unless it says rope";
  const json turned = {{"position_embedding_type", "rope"}};
  EXPECT_TRUE(parse(with(with(small("granitemoehybrid"), dense), turned)).layer_ropes.empty());
  EXPECT_TRUE(fourth.mixers.empty() && !fourth.delta.is_state_space);
}

}  // namespace
}  // namespace troupe
