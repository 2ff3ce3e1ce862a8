// What sets models with linear attention, state spaces or short convolutions apart in config.json.
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
using test::small;
using test::with;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr mixer_kind linear = mixer_kind::delta, attends = mixer_kind::attention;

TEST(hf_config, qwen35_fills_in_its_defaults) {
  const auto config = parse({{"model_type", "qwen3_5_text"}});
  EXPECT_EQ(config.hidden, 4096);
  EXPECT_EQ(config.head_dim, 256);
  EXPECT_EQ(config.turned_dim(), 64);
  EXPECT_TRUE(config.attention_gate && config.qk_norm && config.keeps_states());
  EXPECT_EQ(config.delta.channels(), 2 * 16 * 128 + 32 * 128);
  EXPECT_EQ(config.delta.kernel, 4);
  EXPECT_EQ(config.delta.key_head_of(3), 1) << "two value heads share a key head";
  EXPECT_EQ(config.mixers.size(), 32u);
  EXPECT_EQ(config.mixer_of(2), linear);
  EXPECT_EQ(config.mixer_of(3), attends);
  EXPECT_EQ(config.state_floats(0), 3 * 8192 + 32 * 128 * 128);
  EXPECT_EQ(config.state_floats(3), 0);
}

TEST(hf_config, qwen35_is_found_where_it_also_sees_pictures) {
  const json text = with(small("qwen3_5_text"), {{"rope_parameters",
                                                  {{"rope_theta", 1e7},
                                                   {"rope_type", "default"},
                                                   {"partial_rotary_factor", 0.5},
                                                   {"mrope_section", {11, 11, 10}}}}});
  const auto config = parse({{"model_type", "qwen3_5"}, {"text_config", text}});
  EXPECT_EQ(config.family, "qwen35");
  EXPECT_TRUE(config.file.sees_pictures);
  EXPECT_EQ(config.rope.theta, 1e7);
  EXPECT_EQ(config.rotary_dim, 128);
}

TEST(hf_config, granite_has_state_spaces_between_layers_that_attend) {
  const json sizes = {{"hidden_size", 16}, {"mamba_n_heads", 2}, {"mamba_d_state", 32}};
  const json factors = {{"rms_norm_eps", 1e-5}, {"residual_multiplier", 0.25}};
  const json type = with(with(small("granitemoehybrid"), sizes), factors);
  const auto config = parse(with(type, {{"layer_types", {"mamba", "attention"}}}));
  EXPECT_THAT(config.mixers, ElementsAre(linear, attends));
  EXPECT_TRUE(config.delta.is_state_space && config.delta.convolution_bias);
  EXPECT_EQ(config.delta.values(), 2 * config.hidden);
  EXPECT_EQ(config.delta.norm_eps, 1e-5f) << "the residual factor is none of its norm's";
  EXPECT_EQ(config.norm_eps, 16e-5f);
  EXPECT_TRUE(config.experts.count == 8 && config.experts.taken == 2 && config.experts.shared_ffn == 1024);
  EXPECT_THAT(arithmetic_of(config), HasSubstr("state space"));
  EXPECT_THAT(parse(type).mixers, ElementsAre(linear, linear)) << "unless they are listed";
  const auto kinds = linear_kinds_of(config, 0);
  EXPECT_THAT(std::vector(kinds.begin(), kinds.begin() + 4),
              ElementsAre(linear_kind::delta_z, linear_kind::delta_qkv, linear_kind::delta_a, linear_kind::delta_out))
      << "as one tensor has the first three";
}

TEST(hf_config, layers_of_nemotron_h_have_one_part_each) {
  const json sizes = {{"mamba_num_heads", 2}, {"mamba_head_dim", 16}, {"ssm_state_size", 32}, {"n_groups", 1}};
  const json type = with(small("nemotron_h"), sizes);
  const auto config = parse(with(type, {{"hybrid_override_pattern", "M-MM*-"}}));
  EXPECT_EQ(config.layers, 4);
  EXPECT_THAT(config.mixers, ElementsAre(linear, linear, linear, attends));
  EXPECT_TRUE(config.has_mlp(0) && !config.has_mlp(1) && !config.has_mlp(2) && config.has_mlp(3));
  EXPECT_TRUE(config.file.layers[3].mixer == 4 && config.file.layers[3].mlp == 5);
  EXPECT_EQ(config.mlp_width(1), 0);
  EXPECT_EQ(config.rope_of(3), layer_rope::none);
  EXPECT_TRUE(config.activation == activation_kind::squared_relu && !config.gated_mlp);
  const json listed = {{"layers_block_type", {"mamba", "mlp", "linear_attention", "attention", "mlp"}}};
  EXPECT_THAT(parse(with(type, listed)).mixers, ElementsAre(linear, linear, attends));
  const auto refused = [&](const char* letters) {
    return refusal_of(with(type, {{"hybrid_override_pattern", letters}}));
  };
  EXPECT_THAT(refused("MX"), HasSubstr("layer 1 is of a kind that is not supported"));
  EXPECT_THAT(refused("M--"), HasSubstr("layer 2 is an mlp with nothing before it"));
  EXPECT_THAT(refused("-M"), HasSubstr("layer 0 is an mlp with nothing before it"));
  EXPECT_THAT(refusal_of(type), HasSubstr("hybrid_override_pattern"));
  EXPECT_NE(arithmetic_of(parse(with(type, {{"hybrid_override_pattern", "MM-"}}))),
            arithmetic_of(parse(with(type, {{"hybrid_override_pattern", "M-M"}}))));
}

TEST(hf_config, some_layers_of_nemotron_h_have_experts) {
  const json sizes = {{"mamba_num_heads", 2},       {"mamba_head_dim", 16},
                      {"ssm_state_size", 32},       {"n_groups", 1},
                      {"n_routed_experts", 4},      {"num_experts_per_tok", 2},
                      {"moe_intermediate_size", 8}, {"moe_shared_expert_intermediate_size", 24},
                      {"intermediate_size", 40},    {"hybrid_override_pattern", "MEM-M*E"}};
  const json type = with(small("nemotron_h"), sizes);
  const auto config = parse(type);
  EXPECT_TRUE(config.has_experts(0) && !config.has_experts(1) && !config.has_experts(2) && config.has_experts(3));
  EXPECT_EQ(config.ffn, 8);
  EXPECT_THAT((std::array{config.mlp_width(0), config.mlp_width(1), config.mlp_width(2), config.mlp_width(3)}),
              ElementsAre(24, 40, 0, 24));
  EXPECT_TRUE(config.experts.sigmoid_shares && config.experts.choice_bias && config.experts.whole_shares);
  EXPECT_EQ(parse(with(type, {{"hybrid_override_pattern", "MEM"}})).widest_mlp(), 24);  // there is no other mlp
  EXPECT_THAT(refusal_of(with(type, {{"moe_latent_size", 16}})), HasSubstr("moe_latent_size"));
}

TEST(hf_config, layers_of_linear_attention_are_listed_or_all_but_every_nth) {
  const json type = small("qwen3_next");
  EXPECT_THAT(parse(with(type, {{"full_attention_interval", 2}})).mixers, ElementsAre(linear, attends));
  EXPECT_THAT(parse(with(type, {{"layer_types", {"full_attention", "linear_attention"}}})).mixers,
              ElementsAre(attends, linear));
  EXPECT_THAT(refusal_of(with(type, {{"layer_types", {"full_attention", "sliding_attention"}}})),
              HasSubstr("the layer type \"sliding_attention\" is not supported"));
  EXPECT_THAT(refusal_of(with(type, {{"layer_types", {"full_attention"}}})), HasSubstr("1 entries for 2 layers"));
  EXPECT_THAT(refusal_of(with(type, {{"full_attention_interval", 0}})), HasSubstr("\"full_attention_interval\" is 0"));
}

TEST(hf_config, qwen3_next_and_qwen35_moe_have_an_mlp_beside_their_experts) {
  const auto next = parse(small("qwen3_next")), moe = parse(small("qwen3_5_moe_text"));
  EXPECT_EQ(next.experts.count, 512);
  EXPECT_EQ(next.experts.taken, 10);
  EXPECT_EQ(moe.experts.count, 256);
  for (const auto& config : {next, moe}) {
    EXPECT_TRUE(config.experts.shared_gate && config.experts.whole_shares) << config.family;
    EXPECT_EQ(config.experts.shared_ffn, 512) << config.family;
  }
  EXPECT_FALSE(parse(with(small("qwen3_next"), {{"norm_topk_prob", false}})).experts.whole_shares);
  EXPECT_TRUE(parse(with(small("qwen3_5_moe_text"), {{"norm_topk_prob", false}})).experts.whole_shares)
      << "its class does not read it";
}

TEST(hf_config, refuses_linear_attention_of_other_sizes) {
  const auto refused = [](const json& fields) { return refusal_of(with(small("qwen3_5_text"), fields)); };
  EXPECT_THAT(refused({{"linear_key_head_dim", 24}}), HasSubstr("heads of 24 in linear attention are not"));
  EXPECT_THAT(refused({{"linear_num_key_heads", 3}}),
              HasSubstr("32 heads of linear attention cannot share 3 key heads"));
  EXPECT_THAT(refused({{"linear_num_value_heads", 0}}), HasSubstr("value heads of linear attention is 0"));
  EXPECT_THAT(refused({{"linear_conv_kernel_dim", 17}}), HasSubstr("is 17, but should be 1 to 16"));
  EXPECT_THAT(refused({{"linear_num_value_heads", 1024}}),
              HasSubstr("convolution reads of linear attention is 135168"));
  EXPECT_THAT(refused({{"attn_output_gate", false}}), HasSubstr("\"attn_output_gate\" is false"));
}

TEST(hf_config, what_linear_attention_is_made_of_decides_what_is_computed) {
  const auto line = [](const json& fields) { return arithmetic_of(parse(with(small("qwen3_5_text"), fields))); };
  const std::string usual = line(json::object());
  for (const json& other : {json{{"linear_num_key_heads", 32}}, json{{"linear_conv_kernel_dim", 3}},
                            json{{"full_attention_interval", 2}}, json{{"linear_value_head_dim", 64}}})
    EXPECT_NE(line(other), usual) << other.dump();
}

json lfm2(const json& fields) {
  return with(json{{"model_type", "lfm2"}, {"hidden_size", 64}, {"num_hidden_layers", 3}, {"num_attention_heads", 4}},
              fields);
}

TEST(hf_config, lfm2_lists_the_layers_that_attend_by_type_or_by_number) {
  constexpr auto convolves = mixer_kind::convolution;
  const auto config = parse(lfm2({{"layer_types", {"conv", "full_attention", "conv"}}, {"num_key_value_heads", 2}}));
  EXPECT_THAT(config.mixers, ElementsAre(convolves, attends, convolves));
  EXPECT_TRUE(config.keeps_states() && config.qk_norm && config.tied_embeddings);
  EXPECT_EQ(config.state_floats(0), 2 * 64);
  EXPECT_EQ(config.state_floats(1), 0);
}

TEST(hf_config, lfm2_is_found_where_it_also_sees_pictures) {
  const json text = lfm2({{"full_attn_idxs", {1}}, {"num_key_value_heads", 2}});
  const auto config = parse({{"model_type", "lfm2_vl"}, {"text_config", text}, {"tie_word_embeddings", true}});
  EXPECT_EQ(config.family, "lfm2");
  EXPECT_TRUE(config.file.sees_pictures);
  const auto tied = [&](bool whole, bool within) {
    const json part = with(text, {{"tie_embedding", within}});
    return parse({{"model_type", "lfm2_vl"}, {"text_config", part}, {"tie_word_embeddings", whole}}).tied_embeddings;
  };
  EXPECT_TRUE(tied(true, false) && tied(false, true));
  EXPECT_FALSE(tied(false, false));
}

TEST(hf_config, lfm2_says_how_wide_its_mlp_would_be_without_a_gate) {
  const json layers{{"full_attn_idxs", {2}}, {"num_key_value_heads", 2}};
  const auto ffn = [&](const json& fields) { return parse(lfm2(with(layers, fields))).ffn; };
  EXPECT_EQ(ffn({{"block_ff_dim", 12288}}), 8192);
  EXPECT_EQ(ffn({{"intermediate_size", 1000}}), 768) << "of 666, to whole 256";
  EXPECT_EQ(ffn({{"intermediate_size", 1000}, {"block_ffn_dim_multiplier", 1.5}, {"block_multiple_of", 10}}), 1000);
  EXPECT_EQ(ffn({{"intermediate_size", 1000}, {"block_auto_adjust_ff_dim", false}}), 1000);
}

TEST(hf_config, lfm2_moe_chooses_experts_by_sigmoids_behind_its_first_layers) {
  const auto config = parse(lfm2({{"model_type", "lfm2_moe"},
                                  {"num_key_value_heads", 2},
                                  {"layer_types", {"conv", "conv", "full_attention"}},
                                  {"moe_intermediate_size", 48},
                                  {"intermediate_size", 96}}));
  EXPECT_TRUE(config.experts.sigmoid_shares && config.experts.choice_bias && config.experts.whole_shares);
  EXPECT_EQ(config.experts.count, 32);
  EXPECT_EQ(config.experts.taken, 4);
  EXPECT_EQ(config.ffn, 48);
  EXPECT_EQ(config.experts.dense_ffn, 96);
  EXPECT_THAT(config.experts.dense_layers, ElementsAre(true, true, false));
}

TEST(hf_config, refuses_short_convolutions_of_other_shapes) {
  const auto refused = [](const json& fields) {
    return refusal_of(lfm2(with(json{{"full_attn_idxs", {1}}, {"num_key_value_heads", 2}}, fields)));
  };
  EXPECT_THAT(refused({{"conv_bias", true}}), HasSubstr("\"conv_bias\" is true, which is not supported"));
  EXPECT_THAT(refused({{"conv_L_cache", 17}}), HasSubstr("short convolutions is 17, but should be 1 to 16"));
  EXPECT_THAT(refused({{"hidden_size", 72}}), HasSubstr("72 columns, but multiples of 16 are supported"));
  EXPECT_THAT(refused({{"full_attn_idxs", {1, 3}}}), HasSubstr("\"full_attn_idxs\" names layer 3 of 3"));
  EXPECT_THAT(refused({{"layer_types", {"conv", "conv", "linear_attention"}}}),
              HasSubstr("the layer type \"linear_attention\" is not supported: conv and full_attention are"));
  EXPECT_THAT(refused({{"block_ffn_dim_multiplier", 0}}), HasSubstr("\"block_ffn_dim_multiplier\" is 0"));
}

TEST(hf_config, how_far_short_convolutions_see_decides_what_is_computed) {
  const auto line = [](const json& fields) {
    return arithmetic_of(parse(lfm2(with(json{{"full_attn_idxs", {1}}, {"num_key_value_heads", 2}}, fields))));
  };
  const std::string usual = line(json::object());
  for (const json& other : {json{{"conv_L_cache", 4}}, json{{"full_attn_idxs", {2}}}})
    EXPECT_NE(line(other), usual) << other.dump();
}

}  // namespace
}  // namespace troupe
