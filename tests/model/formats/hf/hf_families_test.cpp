// What sets single families apart in config.json.
#include <cmath>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "model/formats/model_config.hpp"
#include "tests/model/formats/fixtures.hpp"
#include "tests/model/formats/hf/hf_config_fixture.hpp"

namespace troupe {
namespace {

using nlohmann::json;
using test::longrope;
using test::parse;
using test::refusal_of;
using test::small;
using test::with;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(hf_config, phi3_fills_in_its_defaults) {
  const auto config = parse({{"model_type", "phi3"}});
  EXPECT_EQ(config.hidden, 3072);
  EXPECT_EQ(config.head_dim, 96);
  EXPECT_EQ(config.ffn, 8192);
  EXPECT_EQ(config.context, 4096);
  EXPECT_FLOAT_EQ(config.norm_eps, 1e-5f);
  EXPECT_EQ(config.rotary_dim, 0);
  EXPECT_TRUE(config.windows.empty());
  EXPECT_FALSE(config.tied_embeddings || config.qkv_bias || config.qk_norm || config.output_norms);
  EXPECT_THAT(parse(with(small("phi3"), {{"sliding_window", 7}})).windows, ElementsAre(7, 7));
}

TEST(hf_config, phi3_reads_longrope_under_all_its_names) {
  for (const char* type : {"longrope", "su", "yarn"}) {
    auto fields = longrope(1);
    fields["rope_scaling"]["type"] = type;
    const auto rope = parse(with(small("phi3"), fields)).rope;
    EXPECT_EQ(rope.scaling, rope_scaling::longrope) << type;
    EXPECT_EQ(rope.original_context, 4096);
    EXPECT_EQ(rope.factor, 32);
    EXPECT_EQ(rope.length, 0) << "the usual one";
    EXPECT_THAT(rope.frequency_divisors, ElementsAre(4.0f));
    EXPECT_THAT(rope.short_divisors, ElementsAre(1.5f));
  }
}

TEST(hf_config, phi3_may_turn_a_part_of_each_head) {
  const json part = {{"partial_rotary_factor", 0.75}, {"head_dim", 16}};
  EXPECT_EQ(parse(with(small("phi3"), part)).rotary_dim, 12);
  EXPECT_EQ(parse(with(with(small("phi3"), part), longrope(6))).turned_dim(), 12);
  EXPECT_EQ(parse(with(small("phi3"), {{"head_dim", 16}})).turned_dim(), 16);
}

TEST(hf_config, smollm3_has_layers_that_do_not_turn_their_heads) {
  using enum layer_rope;
  const auto usual = parse(with(small("smollm3"), {{"num_hidden_layers", 5}}));
  EXPECT_THAT(usual.layer_ropes, ElementsAre(global, global, global, none, global));
  EXPECT_EQ(usual.rope.theta, 2e6);
  EXPECT_TRUE(usual.tied_embeddings && usual.windows.empty());
  EXPECT_THAT(parse(with(small("smollm3"), {{"no_rope_layers", {0, 1}}})).layer_ropes, ElementsAre(none, global));
  const json slides = {{"use_sliding_window", true}, {"sliding_window", 9}, {"no_rope_layer_interval", 2}};
  EXPECT_THAT(parse(with(small("smollm3"), slides)).windows, ElementsAre(0, 9));
  const json listed = {{"sliding_window", 9}, {"layer_types", {"sliding_attention", "full_attention"}}};
  EXPECT_THAT(parse(with(small("smollm3"), listed)).windows, ElementsAre(9, 0)) << "whatever use_sliding_window says";
  EXPECT_TRUE(parse(with(small("smollm3"), {{"sliding_window", 9}})).windows.empty());
}

json small_gemma(const json& more = json::object()) {
  return with(with(small("gemma3_text"), {{"head_dim", 4}}), more);
}

TEST(hf_config, gemma3_fills_in_its_defaults) {
  using enum layer_rope;
  const auto config = parse(small_gemma({{"num_hidden_layers", 7}}));
  EXPECT_EQ(config.family, "gemma3");
  EXPECT_TRUE(config.output_norms && config.qk_norm && config.tied_embeddings && config.gated_mlp);
  EXPECT_EQ(config.activation, activation_kind::gelu_tanh);
  EXPECT_FLOAT_EQ(config.embedding_factor, std::sqrt(8.0f));
  EXPECT_EQ(config.score_dim, 256);
  EXPECT_THAT(config.layer_ropes, ElementsAre(local, local, local, local, local, global, local));
  EXPECT_THAT(config.windows, ElementsAre(4096, 4096, 4096, 4096, 4096, 0, 4096));
  EXPECT_TRUE(config.rope.theta == 1e6 && config.local_rope.theta == 1e4);
}

TEST(hf_config, gemma3_reads_two_ropes_in_both_spellings) {
  const json scaling = {{"rope_type", "linear"}, {"factor", 8.0}};
  const auto old = parse(small_gemma({{"rope_theta", 5e5}, {"rope_local_base_freq", 7e3}, {"rope_scaling", scaling}}));
  const auto newer = parse(small_gemma({{"rope_parameters",
                                         {{"full_attention", with(scaling, {{"rope_theta", 5e5}})},
                                          {"sliding_attention", {{"rope_type", "default"}, {"rope_theta", 7e3}}}}}}));
  for (const auto& config : {old, newer}) {
    EXPECT_TRUE(config.rope.theta == 5e5 && config.local_rope.theta == 7e3);
    EXPECT_TRUE(config.rope.scaling == rope_scaling::linear && config.rope.factor == 8);
    EXPECT_EQ(config.local_rope.scaling, rope_scaling::none);
  }
}

TEST(hf_config, of_two_ropes_the_old_field_changes_what_the_new_one_says) {
  const json wide = {{"rope_type", "linear"}, {"factor", 8.0}, {"rope_theta", 5e5}};
  const auto rope = [&](const char* type, const json& old) {
    const json both = {{"rope_parameters", {{"full_attention", wide}}}, {"rope_scaling", old}, {"head_dim", 4}};
    return parse(with(small(type), both)).rope;
  };
  for (const char* type : {"gemma3_text", "olmo3"}) {
    const auto changed = rope(type, {{"factor", 4.0}, {"type", "default"}});
    EXPECT_TRUE(changed.scaling == rope_scaling::linear && changed.factor == 4 && changed.theta == 5e5) << type;
    EXPECT_EQ(rope(type, {{"rope_type", "default"}, {"rope_theta", 7e3}}).scaling, rope_scaling::none) << type;
    EXPECT_EQ(rope(type, nullptr).factor, 8) << type;
  }
  EXPECT_THAT(refusal_of(small_gemma({{"rope_scaling", 3}})), HasSubstr("config.json: rope_scaling"));
}

TEST(hf_config, a_layer_of_gemma3_with_a_window_has_the_local_rope_whoever_names_it) {
  using enum layer_rope;
  const json types = {"full_attention", "sliding_attention"};
  const auto listed = parse(small_gemma({{"layer_types", types}, {"sliding_window", 5}}));
  EXPECT_THAT(listed.windows, ElementsAre(0, 5));
  EXPECT_THAT(listed.layer_ropes, ElementsAre(global, local));
  const auto wide = parse(small_gemma({{"layer_types", types}, {"sliding_window", nullptr}}));
  EXPECT_TRUE(wide.windows.empty());
  EXPECT_THAT(wide.layer_ropes, ElementsAre(global, local));
}

TEST(hf_config, of_a_gemma3_that_sees_pictures_the_language_model_is_read) {
  const auto config = parse({{"model_type", "gemma3"},
                             {"architectures", {"Gemma3ForConditionalGeneration"}},
                             {"eos_token_id", {1, 6}},
                             {"text_config", with(small("gemma3_text"), {{"query_pre_attn_scalar", 168}})},
                             {"vision_config", {{"hidden_size", 99}}}});
  EXPECT_EQ(config.family, "gemma3");
  EXPECT_EQ(config.hidden, 8);
  EXPECT_EQ(config.score_dim, 168);
  EXPECT_THAT(config.eos_tokens, ElementsAre(1, 6));
}

/// What is added to the rows is multiplied by a factor: instead the rows are over it from the beginning.
TEST(hf_config, granite_multiplies_by_factors) {
  const json factors = {{"embedding_multiplier", 12}, {"residual_multiplier", 0.25}, {"logits_scaling", 8.0}};
  const auto config = parse(with(with(small("granite"), factors), {{"attention_multiplier", 0.015625}}));
  EXPECT_FLOAT_EQ(config.embedding_factor, 48);
  EXPECT_FLOAT_EQ(config.norm_eps, 16e-6f);
  EXPECT_EQ(config.score_divisor(), 64);
  EXPECT_EQ(config.logit_factor, 0.125f);
  const auto bare = parse(small("granite"));
  EXPECT_TRUE(bare.embedding_factor == 1 && bare.norm_eps == 1e-6f && bare.logit_factor == 1);
  EXPECT_EQ(bare.score_divisor(), 1) << "not the root of a head's dimensions";
}

TEST(hf_config, olmo2_normalizes_outputs_and_all_heads_at_once) {
  const auto config = parse(small("olmo2"));
  EXPECT_TRUE(!config.input_norms && config.output_norms && config.qk_norm && config.joint_qk_norm);
  EXPECT_EQ(config.q_norm_size(0), 8);
  EXPECT_EQ(config.k_norm_size(0), 4);
  EXPECT_TRUE(config.windows.empty() && config.layer_ropes.empty() && !config.tied_embeddings);
  EXPECT_TRUE(parse(with(small("olmo2"), {{"attention_bias", true}})).out_bias);
}

TEST(hf_config, olmo3_has_windows_and_ropes_by_layer) {
  using enum layer_rope;
  const json yarn = {{"rope_type", "yarn"}, {"factor", 4.0}, {"original_max_position_embeddings", 64}};
  const auto config = parse(with(small("olmo3"), {{"num_hidden_layers", 5}, {"rope_scaling", yarn}}));
  EXPECT_THAT(config.windows, ElementsAre(4096, 4096, 4096, 0, 4096));
  EXPECT_THAT(config.layer_ropes, ElementsAre(local, local, local, global, local));
  EXPECT_TRUE(config.rope.scaling == rope_scaling::yarn && config.local_rope.scaling == rope_scaling::none);
  EXPECT_TRUE(config.rope.theta == 5e5 && config.local_rope.theta == 5e5);
  EXPECT_EQ(parse(with(small("olmo3"), {{"rope_theta", 7e3}})).local_rope.theta, 7e3);
}

TEST(hf_config, gemma2_caps_scores_and_logits) {
  const json base = with(small("gemma2"), {{"head_dim", 4}, {"num_hidden_layers", 3}});
  const auto config = parse(base);
  EXPECT_TRUE(config.score_cap == 50 && config.logit_cap == 30);
  EXPECT_TRUE(config.output_norms && config.input_norms && !config.qk_norm && config.is_geglu());
  EXPECT_EQ(config.score_dim, 256);
  EXPECT_THAT(config.windows, ElementsAre(4096, 0, 4096));
  EXPECT_TRUE(config.layer_ropes.empty() && config.rope.theta == 1e4);
  const auto uncapped = parse(with(base, {{"attn_logit_softcapping", nullptr}, {"final_logit_softcapping", 20.0}}));
  EXPECT_TRUE(uncapped.score_cap == 0 && uncapped.logit_cap == 20);
}

TEST(hf_config, gemma3_caps_what_its_classes_cap) {
  const json caps = small_gemma({{"attn_logit_softcapping", 10.0}, {"final_logit_softcapping", 20.0}});
  const auto reading = parse(caps), seeing = parse({{"model_type", "gemma3"}, {"text_config", caps}});
  EXPECT_TRUE(reading.score_cap == 0 && reading.logit_cap == 20);
  EXPECT_TRUE(seeing.score_cap == 0 && seeing.logit_cap == 0);
  EXPECT_EQ(parse(small_gemma()).logit_cap, 0);
}

TEST(hf_config, queries_of_ministral_grow_with_the_position) {
  const json yarn = {{"rope_type", "yarn"}, {"factor", 16.0},        {"original_max_position_embeddings", 64},
                     {"mscale", 1.0},       {"mscale_all_dim", 1.0}, {"llama_4_scaling_beta", 0.2}};
  const auto config = parse(with(small("ministral3"), {{"head_dim", 4}, {"rope_parameters", yarn}}));
  EXPECT_EQ(config.query_growth, 0.2);
  EXPECT_TRUE(config.rope.scaling == rope_scaling::yarn && config.rope.original_context == 64);
  EXPECT_TRUE(config.windows.empty() && !config.qkv_bias);
  const json plain = {{"rope_type", "default"}, {"original_max_position_embeddings", 32}, {"llama_4_scaling_beta", 1}};
  EXPECT_EQ(parse(with(small("ministral3"), {{"head_dim", 4}, {"rope_parameters", plain}})).rope.original_context, 32);
  const auto usual = parse({{"model_type", "ministral3"}});
  EXPECT_TRUE(usual.query_growth == 0.1 && usual.rope.original_context == 16384 && usual.head_dim == 128);
}

TEST(hf_config, glm_and_ernie_turn_neighbours) {
  const auto glm = parse({{"model_type", "glm"}}), glm4 = parse({{"model_type", "glm4"}});
  EXPECT_TRUE(glm.file.turns_neighbours && glm.qkv_bias && !glm.out_bias && !glm.output_norms);
  EXPECT_TRUE(glm.rotary_dim == 64 && glm.kv_heads == 2 && glm.layers == 40 && glm.norm_eps == 1.5625e-7f);
  EXPECT_TRUE(glm4.file.turns_neighbours && glm4.qkv_bias && !glm4.out_bias && glm4.output_norms && glm4.input_norms);
  const json edge = {{"head_dim", 4}, {"partial_rotary_factor", 1.0}, {"attention_bias", false}};
  const auto whole = parse(with(small("glm"), edge));
  EXPECT_TRUE(whole.rotary_dim == 0 && !whole.qkv_bias);
  const auto ernie = parse({{"model_type", "ernie4_5"}, {"architectures", {"Ernie4_5_ForCausalLM"}}});
  EXPECT_TRUE(ernie.file.turns_neighbours && ernie.rotary_dim == 0 && ernie.tied_embeddings && ernie.rope.theta == 5e5);
  EXPECT_TRUE(!ernie.qkv_bias && !ernie.out_bias && !ernie.mlp_bias);
  const auto biased = parse(with(small("ernie4_5"), {{"use_bias", true}}));
  EXPECT_TRUE(biased.qkv_bias && biased.out_bias && biased.mlp_bias);
  EXPECT_FALSE(parse(small("llama")).file.turns_neighbours);
}

TEST(hf_config, exaone_turns_no_heads_in_layers_that_see_all_beside_some_with_a_window) {
  const auto usual = parse(with(small("exaone4"), {{"num_hidden_layers", 5}}));
  EXPECT_TRUE(usual.output_norms && !usual.input_norms && usual.norms_each_head());
  EXPECT_THAT(usual.windows, ElementsAre(4096, 4096, 4096, 0, 4096));
  EXPECT_EQ(usual.rope_of(3), layer_rope::none);
  EXPECT_EQ(usual.rope_of(4), layer_rope::global);
  const json listed = {{"sliding_window", 7},
                       {"sliding_window_pattern", "LLLG"},
                       {"layer_types", {"full_attention", "sliding_attention"}}};
  EXPECT_THAT(parse(with(small("exaone4"), listed)).windows, ElementsAre(0, 7));
  const auto small_one = parse(with(small("exaone4"), {{"sliding_window", nullptr}}));
  EXPECT_TRUE(small_one.windows.empty() && small_one.layer_ropes.empty());
}

TEST(hf_config, seed_and_arcee_have_biases_and_mlps_of_their_own) {
  const auto seed = parse({{"model_type", "seed_oss"}});
  EXPECT_TRUE(seed.qkv_bias && !seed.out_bias && seed.head_dim == 128 && seed.heads == 80 && seed.layers == 64);
  EXPECT_TRUE(parse(with(small("seed_oss"), {{"attention_out_bias", true}})).out_bias);
  const auto arcee = parse({{"model_type", "arcee"}});
  EXPECT_TRUE(!arcee.gated_mlp && arcee.activation == activation_kind::squared_relu && arcee.hidden == 2560);
  EXPECT_THAT(test::refusal([] { parse(with(small("arcee"), {{"hidden_act", "silu"}})); }), HasSubstr("relu2 is"));
}

TEST(hf_config, minimax_chooses_experts_by_sigmoids_and_turns_a_part_of_heads) {
  const auto usual = parse({{"model_type", "minimax_m2"}});
  EXPECT_TRUE(usual.experts.sigmoid_shares && usual.experts.choice_bias && usual.experts.whole_shares);
  EXPECT_TRUE(usual.joint_qk_norm && usual.rotary_dim == 0 && usual.experts.count == 256 && usual.experts.taken == 8);
  const json base = with(small("minimax_m2"), {{"head_dim", 16}, {"num_local_experts", 4}, {"num_experts_per_tok", 2}});
  EXPECT_EQ(parse(with(base, {{"rotary_dim", 8}})).rotary_dim, 8);
  EXPECT_EQ(parse(with(base, {{"rope_parameters", {{"partial_rotary_factor", 0.5}}}})).rotary_dim, 8);
  EXPECT_THAT(test::refusal([&] { parse(with(base, {{"rotary_dim", 18}})); }), HasSubstr("rotary_dim"));
}

TEST(hf_config, ernies_mixtures_have_experts_between_two_layers) {
  const json base = with(small("ernie4_5_moe"), {{"num_hidden_layers", 6}, {"moe_num_experts", 8}, {"moe_k", 3}});
  const auto usual = parse(base);
  EXPECT_TRUE(usual.file.turns_neighbours && usual.experts.choice_bias && !usual.experts.sigmoid_shares);
  EXPECT_TRUE(usual.experts.taken == 3 && usual.ffn == 1536 && usual.experts.shared_ffn == 2 * 1536);
  EXPECT_THAT(usual.experts.dense_layers, ElementsAre(true, false, false, false, false, false));
  const json some = {{"moe_layer_start_index", 2}, {"moe_layer_end_index", 4}, {"moe_layer_interval", 2}};
  EXPECT_THAT(parse(with(base, some)).experts.dense_layers, ElementsAre(true, true, true, false, true, true));
  EXPECT_THAT(test::refusal([&] { parse(with(base, {{"use_bias", true}})); }), HasSubstr("use_bias"));
}

TEST(hf_config, all_of_each_head_is_turned_where_the_file_says_null_for_the_part) {
  for (const char* type : {"glm", "glm4", "glm4_moe", "qwen3_next"}) {
    const json base = with(small(type), {{"head_dim", 16}});
    EXPECT_LT(parse(base).turned_dim(), 16) << type;
    EXPECT_EQ(parse(with(base, {{"partial_rotary_factor", nullptr}})).turned_dim(), 16) << type;
    const json both = {{"partial_rotary_factor", nullptr}, {"rope_parameters", {{"partial_rotary_factor", 0.75}}}};
    EXPECT_EQ(parse(with(base, both)).turned_dim(), 12) << type;
  }
}

TEST(hf_config, cohere_has_an_mlp_beside_attention_and_layers_that_do_not_turn) {
  const auto first = parse({{"model_type", "cohere"}});
  EXPECT_TRUE(first.parallel && first.file.turns_neighbours && first.norm == norm_kind::layer && !first.norm_bias);
  EXPECT_TRUE(first.logit_factor == 0.0625f && first.rope.theta == 5e5 && first.tied_embeddings &&
              first.bos_token == 5);
  EXPECT_TRUE(first.windows.empty() && first.layer_ropes.empty() && !first.qkv_bias);
  const json own = {{"logit_scale", 0.5}, {"layer_norm_eps", 0.25}, {"attention_bias", true}, {"model_max_length", 99}};
  const auto other = parse(with(small("cohere"), own));
  EXPECT_TRUE(other.logit_factor == 0.5f && other.norm_eps == 0.25f && other.qkv_bias && other.out_bias);
  EXPECT_EQ(other.context, 99);
  const auto second = parse(with(small("cohere2"), {{"num_hidden_layers", 5}, {"sliding_window", 9}}));
  EXPECT_THAT(second.windows, ElementsAre(9, 9, 9, 0, 9));
  EXPECT_THAT(second.layer_ropes, ElementsAre(layer_rope::global, layer_rope::global, layer_rope::global,
                                              layer_rope::none, layer_rope::global));
  const json listed = {{"layer_types", {"full_attention", "sliding_attention"}}};
  EXPECT_THAT(parse(with(small("cohere2"), listed)).windows, ElementsAre(0, 4096));
}

}  // namespace
}  // namespace troupe
