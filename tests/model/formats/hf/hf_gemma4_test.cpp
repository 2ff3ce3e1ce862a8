// What sets Gemma 4 apart in config.json.
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "model/formats/arithmetic_of.hpp"
#include "tests/model/formats/hf/hf_config_fixture.hpp"

namespace troupe {
namespace {

using nlohmann::json;
using test::parse;
using test::refusal_of;
using test::with;
using ::testing::HasSubstr;

const json ropes{
    {"full_attention", {{"rope_type", "proportional"}, {"partial_rotary_factor", 0.25}, {"rope_theta", 1e6}}},
    {"sliding_attention", {{"rope_type", "default"}, {"rope_theta", 1e4}}}};

json gemma4(const json& fields) {
  return with({{"model_type", "gemma4_text"},
               {"hidden_size", 64},
               {"num_hidden_layers", 6},
               {"num_attention_heads", 4},
               {"num_key_value_heads", 2},
               {"head_dim", 16},
               {"global_head_dim", 32},
               {"rope_parameters", ropes}},
              fields);
}

TEST(hf_config, gemma4_has_larger_heads_where_it_sees_all) {
  const auto config = parse(gemma4({{"attention_k_eq_v", true}, {"num_global_key_value_heads", 1}}));
  EXPECT_TRUE(config.has_two_kinds_of_heads());
  for (const std::int64_t layer : {0, 4}) {
    EXPECT_EQ(config.head_dim_of(layer), 16);
    EXPECT_EQ(config.kv_heads_of(layer), 2);
    EXPECT_EQ(config.window_of(layer), 512);
    EXPECT_TRUE(config.has_values(layer));
  }
  EXPECT_EQ(config.head_dim_of(5), 32);
  EXPECT_EQ(config.kv_heads_of(5), 1);
  EXPECT_EQ(config.window_of(5), 0);
  EXPECT_FALSE(config.has_values(5)) << "its keys are";
  EXPECT_FALSE(config.is_one_stage());
  EXPECT_EQ(config.score_divisor(), 1.0f);
}

TEST(hf_config, gemma4_has_as_many_heads_of_keys_where_these_are_no_values) {
  EXPECT_EQ(parse(gemma4({{"num_global_key_value_heads", 1}})).kv_heads_of(5), 2);
}

TEST(hf_config, gemma4_may_list_its_larger_heads_by_layer) {
  const json heads{{"head_dim", 48}, {"num_key_value_heads", 1}};
  const auto config = parse(gemma4({{"per_layer_config", {{"5", heads}}}, {"attention_k_eq_v", true}}));
  EXPECT_EQ(config.head_dim_of(5), 48);
  EXPECT_EQ(config.kv_heads_of(5), 1);
  EXPECT_EQ(parse(gemma4({{"per_layer_config", json::object()}, {"global_head_dim", nullptr}})).head_dim_of(5), 16)
      << "of which none is another";
  const json others{{"2", {{"head_dim", 32}}}, {"5", heads}};
  EXPECT_THAT(refusal_of(gemma4({{"per_layer_config", others}})), HasSubstr("per_layer_config: 5: other heads"));
}

TEST(hf_config, gemma4_sees_all_in_its_last_layer) {
  const json slides(6, "sliding_attention");
  EXPECT_EQ(parse(gemma4({{"layer_types", slides}})).window_of(5), 0);
  const auto config = parse(gemma4({{"num_hidden_layers", 8}, {"sliding_window_pattern", 2}}));
  EXPECT_EQ(config.window_of(7), 0);
  EXPECT_EQ(config.rope_of(7), layer_rope::global);
  EXPECT_EQ(config.window_of(1), 512) << "the pattern of other Gemmas is none of its own";
}

TEST(hf_config, gemma4_turns_a_part_of_the_pairs_and_lets_the_others_stand) {
  const auto config = parse(gemma4(json::object()));
  EXPECT_EQ(config.turned_dim(layer_rope::global), 32);
  EXPECT_EQ(config.turned_dim(layer_rope::local), 16);
  std::vector<float> divisors(16, 1e30f);
  std::fill_n(divisors.begin(), 4, 1.0f);
  EXPECT_EQ(config.rope.frequency_divisors, divisors);
  EXPECT_TRUE(config.local_rope.frequency_divisors.empty());
}

TEST(hf_config, gemma4_may_have_layers_that_read_the_keys_of_earlier_ones) {
  const json kinds{"sliding_attention", "full_attention",    "sliding_attention",
                   "full_attention",    "sliding_attention", "full_attention"};
  const auto config = parse(gemma4({{"layer_types", kinds},
                                    {"num_kv_shared_layers", 2},
                                    {"use_double_wide_mlp", true},
                                    {"intermediate_size", 40},
                                    {"hidden_size_per_layer_input", 16}}));
  EXPECT_EQ(config.keys_of(3), 3);
  EXPECT_EQ(config.keys_of(4), 2);
  EXPECT_EQ(config.keys_of(5), 3);
  EXPECT_TRUE(config.is_shared(2) && config.is_shared(3) && !config.is_shared(1));
  EXPECT_EQ(config.mlp_width(3), 40);
  EXPECT_EQ(config.mlp_width(4), 80);
  EXPECT_TRUE(config.is_one_stage());
  EXPECT_THAT(refusal_of(gemma4({{"num_kv_shared_layers", 5}, {"layer_types", nullptr}})),
              HasSubstr("layer 5 shares keys and values, but no layer of its kind has some"));
  EXPECT_THAT(refusal_of(gemma4({{"num_kv_shared_layers", 6}})), HasSubstr("6 of 6 layers share"));
}

TEST(hf_config, gemma4_may_have_experts_beside_its_mlp) {
  const auto config = parse(gemma4({{"enable_moe_block", true},
                                    {"num_experts", 8},
                                    {"top_k_experts", 2},
                                    {"moe_intermediate_size", 24},
                                    {"intermediate_size", 40}}));
  EXPECT_TRUE(config.experts.apart && config.experts.whole_shares);
  EXPECT_EQ(config.ffn, 24);
  EXPECT_EQ(config.mlp_width(0), 40);
  EXPECT_THAT(refusal_of(gemma4({{"enable_moe_block", true}})), HasSubstr("but not \"num_experts\""));
}

TEST(hf_config, gemma4_is_found_where_it_also_sees_pictures) {
  for (const char* type : {"gemma4", "gemma4_unified"}) {
    const auto config = parse({{"model_type", type}, {"text_config", gemma4({{"model_type", "other_text"}})}});
    EXPECT_EQ(config.family, "gemma4") << type;
    EXPECT_TRUE(config.file.sees_pictures) << type;
  }
}

TEST(hf_config, gemma4_with_what_is_not_computed_is_refused) {
  EXPECT_THAT(refusal_of(gemma4({{"use_bidirectional_attention", "all"}})), HasSubstr("\"all\", which is not"));
  EXPECT_EQ(refusal_of(gemma4({{"use_bidirectional_attention", "vision"}})), "");
  json turned = ropes;
  turned["sliding_attention"] = ropes["full_attention"];
  EXPECT_THAT(refusal_of(gemma4({{"rope_parameters", turned}})), HasSubstr("sliding_attention: such a rope type"));
  EXPECT_THAT(refusal_of(gemma4({{"rope_parameters", nullptr}})), HasSubstr("lacks \"rope_parameters\""));
  EXPECT_THAT(refusal_of(gemma4({{"global_head_dim", 24}})), HasSubstr("multiples of 16 are"));
  EXPECT_THAT(refusal_of(gemma4({{"hidden_size_per_layer_input", 20}})), HasSubstr("multiples of 16 are"));
}

TEST(hf_config, all_that_gemma4_computes_by_is_in_the_line_of_its_arithmetic) {
  const auto line = [](const json& fields) { return arithmetic_of(parse(gemma4(fields))); };
  const std::string usual = line(json::object());
  for (const json& other : {json{{"global_head_dim", 48}}, json{{"attention_k_eq_v", true}},
                            json{{"hidden_size_per_layer_input", 16}}, json{{"final_logit_softcapping", 30.0}}})
    EXPECT_NE(line(other), usual) << other.dump();
}

}  // namespace
}  // namespace troupe
