// DeepSeek's latent attention in config.json, and its groups of experts.
#include <cmath>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "model/formats/arithmetic_of.hpp"
#include "model/formats/linear_layers.hpp"
#include "tests/model/formats/hf/hf_config_fixture.hpp"

namespace troupe {
namespace {

using nlohmann::json;
using test::parse;
using test::refusal_of;
using test::with;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

json deepseek(const std::string& type, const json& fields = json::object()) {
  return with({{"model_type", type},
               {"hidden_size", 64},
               {"num_hidden_layers", 3},
               {"num_attention_heads", 4},
               {"num_experts_per_tok", 2},
               {"n_routed_experts", 16}},
              fields);
}

TEST(hf_config, deepseek_keeps_one_short_row_for_all_heads) {
  const auto config = parse(deepseek("deepseek_v3", {{"kv_lora_rank", 96}, {"v_head_dim", 48}}));
  EXPECT_TRUE(config.is_latent());
  EXPECT_EQ(config.kv_heads, 1);
  EXPECT_EQ(config.head_dim, 96 + 64);
  EXPECT_EQ(config.turned_dim(), 64);
  EXPECT_FALSE(config.has_values(0));
  using enum linear_kind;
  EXPECT_THAT(linear_kinds_of(config, 0), ElementsAre(q_down, q, k, o, gate, up, down));
  EXPECT_EQ(linear_shape(config, 0, q_down), std::pair(std::int64_t{1536}, std::int64_t{64}));
  EXPECT_EQ(linear_shape(config, 0, q), std::pair(std::int64_t{4 * 192}, std::int64_t{1536}));
  EXPECT_EQ(linear_shape(config, 0, k), std::pair(std::int64_t{160}, std::int64_t{64}));
  EXPECT_EQ(linear_shape(config, 0, o), std::pair(std::int64_t{64}, std::int64_t{4 * 48}));
}

TEST(hf_config, deepseek_may_make_queries_of_the_rows) {
  const auto config = parse(deepseek("deepseek_v2", {{"q_lora_rank", nullptr}}));
  EXPECT_EQ(config.latent.query_rank, 0);
  EXPECT_EQ(linear_kinds_of(config, 0).front(), linear_kind::q);
  EXPECT_EQ(parse(deepseek("deepseek_v2")).latent.query_rank, 1536) << "where the file does not say";
}

TEST(hf_config, glm_small_mixture_is_built_so_with_other_sizes) {
  const auto config = parse(deepseek("glm4_moe_lite", {{"partial_rotary_factor", 1.0}}));
  EXPECT_EQ(config.latent.query_rank, 768);
  EXPECT_EQ(config.latent.plain, 192);
  EXPECT_EQ(config.latent.value, 256);
  EXPECT_EQ(config.rotary_dim, 64);
  EXPECT_EQ(config.experts.groups, 1);
  EXPECT_THAT(config.experts.dense_layers, ElementsAre(true, false, false));
  const json types{"sparse", "dense", "sparse"};
  EXPECT_THAT(parse(deepseek("glm4_moe_lite", {{"mlp_layer_types", types}})).experts.dense_layers,
              ElementsAre(false, true, false));
}

TEST(hf_config, deepseek_takes_experts_of_the_best_groups) {
  const auto third = parse(deepseek("deepseek_v3"));
  EXPECT_TRUE(third.experts.sigmoid_shares && third.experts.choice_bias && third.experts.whole_shares);
  EXPECT_EQ(third.experts.groups, 8);
  EXPECT_EQ(third.experts.groups_taken, 4);
  EXPECT_EQ(third.experts.group_best, 2);
  const auto second =
      parse(deepseek("deepseek_v2", {{"topk_method", "group_limited_greedy"}, {"n_group", 4}, {"topk_group", 2}}));
  EXPECT_FALSE(second.experts.sigmoid_shares || second.experts.whole_shares);
  EXPECT_EQ(second.experts.groups, 4);
  EXPECT_EQ(second.experts.groups_taken, 2);
  EXPECT_EQ(second.experts.group_best, 1);
  EXPECT_EQ(parse(deepseek("deepseek_v2", {{"n_group", 4}, {"topk_group", 2}})).experts.groups, 1) << "greedy";
}

TEST(hf_config, shares_of_experts_are_multiplied_by_the_familys_factor_where_the_file_names_none) {
  const auto factor = [](const char* type, const json& fields = json::object()) {
    return parse(deepseek(type, fields)).experts.share_factor;
  };
  EXPECT_EQ(factor("deepseek_v2"), 1.0f);
  EXPECT_EQ(factor("deepseek_v3"), 2.5f);
  EXPECT_EQ(factor("glm4_moe_lite"), 1.8f);
  EXPECT_EQ(factor("deepseek_v3", {{"routed_scaling_factor", 1.0}}), 1.0f);
}

TEST(hf_config, yarn_makes_the_scores_of_deepseek_larger) {
  EXPECT_FLOAT_EQ(parse(deepseek("deepseek_v3")).score_divisor(), std::sqrt(192.0f));
  const json rope{{"type", "yarn"},
                  {"factor", 40},
                  {"mscale", 1.0},
                  {"mscale_all_dim", 1.0},
                  {"original_max_position_embeddings", 4096}};
  const double stretch = 1 + 0.1 * std::log(40.0);
  EXPECT_FLOAT_EQ(parse(deepseek("deepseek_v3", {{"rope_scaling", rope}})).score_divisor(),
                  static_cast<float>(std::sqrt(192.0) / (stretch * stretch)));
}

TEST(hf_config, latent_attention_is_part_of_the_arithmetic) {
  const auto usual = arithmetic_of(parse(deepseek("deepseek_v3")));
  EXPECT_NE(usual, arithmetic_of(parse(deepseek("deepseek_v3", {{"v_head_dim", 64}}))));
  EXPECT_NE(usual, arithmetic_of(parse(deepseek("deepseek_v3", {{"topk_group", 3}}))));
}

TEST(hf_config, deepseek_that_is_built_otherwise_is_refused) {
  const auto refusal = [](const char* type, const json& fields) { return refusal_of(deepseek(type, fields)); };
  EXPECT_THAT(refusal("deepseek_v3", {{"rope_interleave", false}}), HasSubstr("rope_interleave"));
  EXPECT_THAT(refusal("deepseek_v3", {{"attention_bias", true}}), HasSubstr("with biases"));
  EXPECT_THAT(refusal("deepseek_v3", {{"kv_lora_rank", 100}}), HasSubstr("multiples of 16 are"));
  EXPECT_THAT(refusal("deepseek_v3", {{"scoring_func", "softmax"}}), HasSubstr("sigmoid is"));
  EXPECT_THAT(refusal("deepseek_v3", {{"n_group", 5}}), HasSubstr("16 experts in 5 groups"));
  EXPECT_THAT(refusal("deepseek_v3", {{"n_group", 16}, {"topk_group", 2}}),
              HasSubstr("groups of 1 experts are too small"));
  EXPECT_THAT(refusal("deepseek_v2", {{"topk_method", "noaux_tc"}}), HasSubstr("greedy and group_limited_greedy are"));
  EXPECT_THAT(refusal("deepseek_v2", {{"moe_layer_freq", 2}}), HasSubstr("moe_layer_freq"));
  EXPECT_THAT(refusal("deepseek_v2", {{"norm_topk_prob", true}}), HasSubstr("norm_topk_prob"));
  EXPECT_THAT(refusal("glm4_moe_lite", {{"mlp_layer_types", json{"dense"}}}), HasSubstr("1 entries for 3 layers"));
}

}  // namespace
}  // namespace troupe
