#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "base/to_size.hpp"
#include "model/formats/hf/hf_config.hpp"
#include "model/formats/model_config.hpp"
#include "model/formats/sampling_advice.hpp"
#include "tests/model/formats/fixtures.hpp"
#include "tests/model/formats/gguf/gguf_builder.hpp"
#include "tests/model/formats/hf/hf_config_fixture.hpp"

namespace troupe {
namespace {

using nlohmann::json;
using test::longrope;
using test::parse;
using test::refusal;
using test::refusal_of;
using test::small;
using test::with;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(hf_config, gpt2_fills_in_its_defaults) {
  const auto config = parse({{"model_type", "gpt2"}});
  EXPECT_EQ(config.hidden, 768);
  EXPECT_EQ(config.layers, 12);
  EXPECT_EQ(config.kv_heads, 12);
  EXPECT_EQ(config.head_dim, 64);
  EXPECT_EQ(config.ffn, 3072);
  EXPECT_EQ(config.context, 1024);
  EXPECT_EQ(config.norm, norm_kind::layer);
  EXPECT_EQ(config.position, position_kind::learned);
  EXPECT_EQ(config.activation, activation_kind::gelu_tanh);
  EXPECT_TRUE(config.tied_embeddings && config.qkv_bias && config.out_bias && config.mlp_bias);
  EXPECT_FALSE(config.gated_mlp);
  EXPECT_THAT(config.eos_tokens, ElementsAre(50256));
}

TEST(hf_config, gpt2_reads_its_fields) {
  const auto config = parse(with(small("gpt2"), {{"n_inner", 20},
                                                 {"n_ctx", 99},
                                                 {"layer_norm_epsilon", 1e-3},
                                                 {"tie_word_embeddings", false},
                                                 {"activation_function", "gelu_pytorch_tanh"}}));
  EXPECT_EQ(config.ffn, 20);
  EXPECT_EQ(config.context, 99);
  EXPECT_FLOAT_EQ(config.norm_eps, 1e-3f);
  EXPECT_FALSE(config.tied_embeddings);
  EXPECT_TRUE(config.eos_tokens.empty()) << "the default end token lies outside of this vocabulary";
}

TEST(hf_config, llama_fills_in_its_defaults) {
  const auto config = parse({{"architectures", {"LlamaForCausalLM"}}});
  EXPECT_EQ(config.family, "llama");
  EXPECT_EQ(config.vocab_size, 32000);
  EXPECT_EQ(config.ffn, 11008);
  EXPECT_EQ(config.kv_heads, 32);
  EXPECT_EQ(config.head_dim, 128);
  EXPECT_EQ(config.context, 2048);
  EXPECT_FLOAT_EQ(config.norm_eps, 1e-6f);
  EXPECT_FALSE(config.tied_embeddings || config.qkv_bias || config.out_bias || config.mlp_bias || config.qk_norm);
  EXPECT_EQ(config.rope.theta, 10000.0);
  EXPECT_EQ(config.bos_token, 1);
}

TEST(hf_config, knows_models_without_heads_and_the_older_spelling) {
  const auto family = [](const char* architecture) { return parse({{"architectures", {architecture}}}).family; };
  EXPECT_EQ(family("GPT2Model"), "gpt2");
  EXPECT_EQ(family("LlamaModel"), "llama");
  EXPECT_EQ(family("LLaMAForCausalLM"), "llama");
  EXPECT_EQ(family("MistralModel"), "mistral");
  EXPECT_EQ(family("Qwen3Model"), "qwen3");
  for (const char* other : {"Model", "Llama", "QwenModel", "DbrxModel"})
    EXPECT_THAT(refusal_of({{"architectures", {other}}}), HasSubstr("is not supported")) << other;
}

TEST(hf_config, llama_reads_biases_and_head_size) {
  const auto config = parse(with(small("llama"), {{"attention_bias", true}, {"mlp_bias", true}, {"head_dim", 6}}));
  EXPECT_TRUE(config.qkv_bias && config.out_bias && config.mlp_bias);
  EXPECT_EQ(config.head_dim, 6);
}

TEST(hf_config, rope_is_read_in_all_spellings) {
  const json llama3 = {{"factor", 8.0},
                       {"low_freq_factor", 1.0},
                       {"high_freq_factor", 4},
                       {"original_max_position_embeddings", 64},
                       {"rope_type", "llama3"}};
  const auto old = parse(with(small("llama"), {{"rope_theta", 5e5}, {"rope_scaling", llama3}}));
  const auto newer = parse(with(small("llama"), {{"rope_parameters", with(llama3, {{"rope_theta", 5e5}})}}));
  for (const auto& config : {old, newer}) {
    EXPECT_EQ(config.rope.theta, 5e5);
    EXPECT_EQ(config.rope.scaling, rope_scaling::llama3);
    EXPECT_EQ(config.rope.factor, 8.0);
    EXPECT_EQ(config.rope.high_freq_factor, 4.0);
    EXPECT_EQ(config.rope.original_context, 64);
  }
  const auto outside =
      parse(with(small("llama"), {{"rope_scaling", llama3}, {"original_max_position_embeddings", 32}}));
  EXPECT_EQ(outside.rope.original_context, 32) << "the model's own number counts";
  const auto linear = parse(with(small("llama"), {{"rope_scaling", {{"type", "linear"}, {"factor", 2}}}}));
  EXPECT_EQ(linear.rope.scaling, rope_scaling::linear);
  EXPECT_EQ(linear.rope.factor, 2.0);
  const auto dynamic = parse(with(small("llama"), {{"rope_scaling", {{"type", "dynamic"}, {"factor", 4}}}}));
  EXPECT_EQ(dynamic.rope.scaling, rope_scaling::none) << "nothing is slowed within the context";
  EXPECT_EQ(dynamic.context, parse(small("llama")).context);
  const auto none = parse(with(small("llama"), {{"rope_scaling", nullptr}, {"rope_theta", 7}}));
  EXPECT_EQ(none.rope.scaling, rope_scaling::none);
  EXPECT_EQ(none.rope.theta, 7.0);
}

model_config parse_yarn(const json& fields = json::object()) {
  const json usual = {
      {"rope_type", "yarn"}, {"factor", 4.0}, {"original_max_position_embeddings", 32768}, {"rope_theta", 1e6}};
  return parse(with(small("qwen3"), {{"max_position_embeddings", 40960}, {"rope_parameters", with(usual, fields)}}));
}

TEST(hf_config, yarn_has_the_references_defaults) {
  const auto config = parse_yarn();
  EXPECT_EQ(config.rope.scaling, rope_scaling::yarn);
  EXPECT_EQ(config.rope.theta, 1e6);
  EXPECT_EQ(config.rope.factor, 4.0);
  EXPECT_EQ(config.rope.original_context, 32768);
  const auto& yarn = config.rope.yarn;
  EXPECT_TRUE(yarn.beta_fast == 32 && yarn.beta_slow == 1 && yarn.truncate);
  EXPECT_TRUE(yarn.attention_factor == 1 && yarn.mscale == 1 && yarn.mscale_all_dim == 0);
  const auto own = parse_yarn({{"beta_fast", 16}, {"beta_slow", 2.5}, {"truncate", false}}).rope.yarn;
  EXPECT_TRUE(own.beta_fast == 16 && own.beta_slow == 2.5 && !own.truncate);
}

TEST(hf_config, yarn_reads_the_attention_factor_in_all_spellings) {
  const auto whole = parse_yarn({{"attention_factor", 1.25}, {"attn_factor", 2}, {"mscale", 1}, {"mscale_all_dim", 1}});
  EXPECT_EQ(whole.rope.yarn.attention_factor, 1.25);
  EXPECT_EQ(whole.rope.yarn.mscale, 0) << "instead of the stretch";
  const auto both = parse_yarn({{"mscale", 0.7}, {"mscale_all_dim", 0.5}}).rope.yarn;
  EXPECT_TRUE(both.attention_factor == 1 && both.mscale == 0.7 && both.mscale_all_dim == 0.5);
  const auto one = parse_yarn({{"mscale", 0.7}}).rope.yarn;
  EXPECT_TRUE(one.mscale == 1 && one.mscale_all_dim == 0) << "one alone says nothing";
  const auto on_top = parse_yarn({{"attn_factor", 0.8782488562869419}}).rope.yarn;
  EXPECT_TRUE(on_top.attention_factor == 0.8782488562869419 && on_top.mscale == 1);
}

TEST(hf_config, yarn_stretches_the_context) {
  EXPECT_EQ(parse_yarn().context, 131072);
  EXPECT_EQ(parse_yarn({{"factor", 1}}).context, 40960) << "never below what the file names";
  EXPECT_EQ(parse_yarn({{"original_max_position_embeddings", nullptr}}).context, 4 * 40960);
}

TEST(hf_config, windows_follow_the_family) {
  EXPECT_THAT(parse(with(small("mistral"), {{"sliding_window", 7}})).windows, ElementsAre(7, 7));
  EXPECT_THAT(parse(small("mistral")).windows, ElementsAre(4096, 4096));
  EXPECT_TRUE(parse(with(small("mistral"), {{"sliding_window", nullptr}})).windows.empty());
  const json slides = {{"use_sliding_window", true}, {"sliding_window", 9}, {"max_window_layers", 1}};
  EXPECT_THAT(parse(with(small("qwen2"), slides)).windows, ElementsAre(0, 9));
  EXPECT_TRUE(parse(with(small("qwen2"), {{"sliding_window", 9}, {"max_window_layers", 0}})).windows.empty());
  const json types = {"sliding_attention", "full_attention"};
  EXPECT_THAT(parse(with(with(small("qwen3"), slides), {{"layer_types", types}})).windows, ElementsAre(9, 0));
  EXPECT_THAT(parse(with(small("qwen3_moe"), slides)).windows, ElementsAre(9, 9)) << "which has no max_window_layers";
  EXPECT_TRUE(parse(with(small("qwen3_moe"), {{"sliding_window", 9}})).windows.empty());
  EXPECT_THAT(parse(with(small("mistral"), {{"sliding_window", 7}, {"layer_types", types}})).windows,
              ElementsAre(7, 0));
}

TEST(hf_config, layer_types_are_refused_where_a_family_has_windows_in_all_layers) {
  const json types = {"sliding_attention", "full_attention"};
  for (const char* type : {"phi3", "mixtral", "qwen3_moe", "ministral3"}) {
    const json listed = with(small(type), {{"head_dim", 4}, {"use_sliding_window", true}, {"layer_types", types}});
    EXPECT_THAT(refusal_of(with(listed, {{"sliding_window", 7}})),
                AllOf(HasSubstr("\"layer_types\" lets layer 1 see all"), HasSubstr("make \"sliding_window\" null")))
        << type;
    EXPECT_TRUE(parse(with(listed, {{"sliding_window", nullptr}})).windows.empty()) << type;
    const json same = {{"sliding_window", 7}, {"layer_types", {"sliding_attention", "sliding_attention"}}};
    EXPECT_THAT(parse(with(listed, same)).windows, ElementsAre(7, 7)) << type;
  }
}

TEST(hf_config, qwen_families_differ_in_bias_norm_and_head_size) {
  const auto two = parse(small("qwen2")), three = parse(small("qwen3"));
  EXPECT_TRUE(two.qkv_bias && !two.out_bias && !two.qk_norm);
  EXPECT_TRUE(!three.qkv_bias && three.qk_norm);
  EXPECT_EQ(two.head_dim, 2);
  EXPECT_EQ(three.head_dim, 128);
  EXPECT_TRUE(two.eos_tokens.empty());
  EXPECT_TRUE(parse(with(small("qwen3"), {{"attention_bias", true}})).out_bias);
}

TEST(hf_config, of_models_that_see_pictures_the_language_model_is_read) {
  const auto within = [](const char* type, const json& text) {
    return parse({{"model_type", type}, {"architectures", {"ForConditionalGeneration"}}, {"text_config", text}});
  };
  EXPECT_EQ(within("mistral3", small("mistral")).family, "mistral");
  EXPECT_EQ(within("mistral3", with(small("ministral3"), {{"head_dim", 4}})).family, "ministral3");
  EXPECT_EQ(within("qwen3_vl", with(small("qwen3_vl_text"), {{"head_dim", 4}})).family, "qwen3");
  const json mrope = {{"type", "mrope"}, {"mrope_section", {1, 1, 2}}};
  const auto flat = parse(with(with(small("qwen2_5_vl"), {{"rope_scaling", mrope}}),
                               {{"architectures", {"Qwen2_5_VLForConditionalGeneration"}}, {"vision_config", {}}}));
  EXPECT_TRUE(flat.family == "qwen2" && flat.file.sees_pictures && flat.rope.scaling == rope_scaling::none);
  EXPECT_THAT(refusal_of(with(small("qwen2"), {{"rope_scaling", mrope}})), HasSubstr("mrope"));
  EXPECT_THAT(refusal_of({{"model_type", "mistral3"}, {"text_config", small("qwen3")}}), HasSubstr("mistral3"));
}

TEST(hf_config, what_qwens_that_see_pictures_leave_out_is_not_what_the_language_model_alone_would_have) {
  const auto rope = [](const char* type, const json& text = json::object()) {
    const json part = with({{"hidden_size", 512}, {"num_attention_heads", 4}, {"num_key_value_heads", 2}}, text);
    return parse({{"model_type", type}, {"text_config", part}}).rope.theta;
  };
  EXPECT_TRUE(rope("qwen2_vl") == 1e6 && rope("qwen2_5_vl") == 1e6);
  EXPECT_TRUE(rope("qwen3_vl") == 5e5 && rope("qwen3_vl_moe") == 5e5);
  EXPECT_EQ(rope("qwen3_vl", {{"rope_theta", 7e3}}), 7e3);
  EXPECT_EQ(rope("qwen3_vl", {{"rope_parameters", {{"rope_type", "default"}, {"rope_theta", 7e3}}}}), 7e3);
  const json slides = {{"num_hidden_layers", 82}, {"use_sliding_window", true}, {"sliding_window", 9}};
  const auto windows = parse(with(small("qwen2_5_vl"), slides)).windows;
  ASSERT_EQ(windows.size(), 82u);
  EXPECT_TRUE(windows[79] == 0 && windows[80] == 9) << "behind the first 80";
  EXPECT_EQ(parse(with(with(small("qwen2_5_vl"), slides), {{"max_window_layers", 1}})).windows[1], 9);
}

TEST(hf_config, of_a_model_that_sees_pictures_the_embeddings_may_be_the_head_where_either_flag_says_so) {
  const auto tied = [](const json& whole, const json& text) {
    return parse(with({{"model_type", "mistral3"}, {"text_config", with(small("mistral"), text)}}, whole))
        .tied_embeddings;
  };
  const json yes{{"tie_word_embeddings", true}}, no{{"tie_word_embeddings", false}}, none = json::object();
  EXPECT_TRUE(tied(yes, no) && tied(no, yes) && tied(yes, none) && tied(none, yes) && tied(yes, yes));
  EXPECT_FALSE(tied(no, no) || tied(no, none) || tied(none, no) || tied(none, none));
  EXPECT_TRUE(tied(none, {{"tie_embedding", true}}));
}

TEST(hf_config, end_tokens_come_from_both_files_once) {
  const test::temp_folder folder;
  folder.write("config.json", with(small("llama"), {{"eos_token_id", {3, 4}}, {"bos_token_id", nullptr}}).dump());
  EXPECT_THAT(read_hf_config(folder.path()).eos_tokens, ElementsAre(3, 4));
  EXPECT_EQ(read_hf_config(folder.path()).bos_token, -1);
  folder.write("generation_config.json", R"({"eos_token_id":[4,5]})");
  EXPECT_THAT(read_hf_config(folder.path()).eos_tokens, ElementsAre(3, 4, 5));
  folder.write("generation_config.json", R"({"eos_token_id":"x"})");
  EXPECT_THAT(refusal([&] { read_hf_config(folder.path()); }),
              AllOf(HasSubstr("generation_config.json"), HasSubstr("eos_token_id")));
}

TEST(hf_config, tells_a_gemma3_that_sees_pictures_from_one_that_reads_alone) {
  EXPECT_FALSE(parse(small("gemma3_text")).file.sees_pictures);
  EXPECT_TRUE(parse({{"model_type", "gemma3"}, {"text_config", small("gemma3_text")}}).file.sees_pictures);
}

TEST(sampling_advice, is_what_the_makers_say_on_drawing_tokens) {
  const test::temp_folder folder;
  EXPECT_EQ(read_sampling_advice(folder.path()).temperature, std::nullopt);
  folder.write("generation_config.json", R"({"do_sample":true,"temperature":0.6,"top_p":0.9,"top_k":-1})");
  const sampling_advice advice = read_sampling_advice(folder.path());
  EXPECT_EQ(advice.temperature, 0.6);
  EXPECT_EQ(advice.top_p, 0.9);
  EXPECT_EQ(advice.top_k, 0);
  EXPECT_EQ(advice.repetition_penalty, std::nullopt);
  for (const char* least : {"0", "1e-9", "9.99999997e-07"}) {
    folder.write("generation_config.json", fmt::format(R"({{"top_p":{}}})", least));
    EXPECT_EQ(read_sampling_advice(folder.path()).top_p, 1e-6) << "the likeliest token alone: " << least;
  }
  folder.write("generation_config.json", R"({"top_p":-1e-9})");
  EXPECT_THAT(refusal([&] { read_sampling_advice(folder.path()); }), HasSubstr("top_p is -1e-09"));
  folder.write("generation_config.json", R"({"top_p":1.5})");
  EXPECT_THAT(refusal([&] { read_sampling_advice(folder.path()); }),
              AllOf(HasSubstr("top_p is 1.5"), HasSubstr("correct or remove it")));
  folder.write("generation_config.json", R"({"top_k":40.5})");
  EXPECT_THAT(refusal([&] { read_sampling_advice(folder.path()); }), HasSubstr("top_k"));
  folder.write("generation_config.json", R"({"repetition_penalty":101})");
  EXPECT_THAT(refusal([&] { read_sampling_advice(folder.path()); }), HasSubstr("repetition_penalty is 101"))
      << "or each request would be refused";
}

TEST(sampling_advice, is_in_a_gguf_file_too) {
  const test::temp_folder folder;
  const auto file = test::gguf_builder()
                        .f32("general.sampling.temp", 0.5f)
                        .f32("general.sampling.top_p", 1e-6f)
                        .f32("general.sampling.penalty_repeat", 1.25f)
                        .u32("general.sampling.top_k", 20)
                        .build();
  folder.write("model.gguf", file);
  folder.write("metadata.gguf", file);  // as in a folder that was quantized from one
  for (const auto& model : {folder.path() / "model.gguf", folder.path()}) {
    const sampling_advice advice = read_sampling_advice(model);
    EXPECT_EQ(advice.temperature, 0.5);
    EXPECT_EQ(advice.top_k, 20);
    EXPECT_EQ(advice.top_p, 1e-6) << "which is a little less as a float";
    EXPECT_EQ(advice.repetition_penalty, 1.25);
  }
}

struct bad_field {
  std::string name, type;
  json fields;
  std::string says;
};
class bad_config : public ::testing::TestWithParam<bad_field> {};

TEST_P(bad_config, is_refused_by_the_field) {
  const auto& test = GetParam();
  EXPECT_THAT(refusal_of(with(small(test.type), test.fields)), AllOf(HasSubstr("config.json"), HasSubstr(test.says)));
}

json rope(const json& fields) {
  return {{"rope_scaling", fields}};
}

json coded(const json& fields) {
  return {{"quantization_config", fields}};
}

TEST(hf_config, says_who_quantized_the_weights) {
  const auto codes = [](const json& fields) { return parse(with(small("llama"), fields)).codes; };
  EXPECT_EQ(codes(json::object()).format, code_format::none);
  EXPECT_EQ(codes(coded({{"quant_method", "gptq"}, {"bits", 4}})).format, code_format::gptq);
  EXPECT_EQ(codes(coded({{"quant_method", "gptq"}, {"checkpoint_format", "gptq_v2"}})).format, code_format::gptq_v2);
  EXPECT_TRUE(codes(coded({{"quant_method", "gptq"}, {"sym", true}})).is_symmetric);
  EXPECT_EQ(codes(coded({{"quant_method", "awq"}, {"version", "gemm"}})).format, code_format::awq);
  EXPECT_EQ(codes(coded({{"quant_method", "mxfp4"}})).format, code_format::mxfp4);
  const auto fp8 = codes(coded({{"quant_method", "fp8"}, {"weight_block_size", {64, 32}}}));
  EXPECT_EQ(fp8.format, code_format::fp8);
  EXPECT_EQ(fp8.block_outs, 64);
  EXPECT_EQ(fp8.block_ins, 32);
  const json weights = {{"weights", {{"block_structure", {16, 32}}}}};
  const json said = {{"quant_method", "compressed-tensors"}, {"format", "float-quantized"}};
  const auto compressed = codes({{"compression_config", with(said, {{"config_groups", {{"group_0", weights}}}})}});
  EXPECT_EQ(compressed.format, code_format::compressed);
  EXPECT_EQ(compressed.block_ins, 32);
}

TEST(hf_config, gpt_oss_has_sinks_biases_and_a_clamped_activation) {
  const json sizes = {{"head_dim", 4}, {"num_local_experts", 6}};
  const auto config = parse(with(small("gpt_oss"), sizes));
  EXPECT_EQ(config.family, "gpt-oss");
  EXPECT_TRUE(config.attention_sinks && config.qkv_bias && config.out_bias && config.mlp_bias);
  EXPECT_EQ(config.activation, activation_kind::clamped_silu);
  EXPECT_TRUE(config.activation_limit == 7.0f && config.activation_slope == 1.702f);
  EXPECT_TRUE(config.experts.count == 6 && config.experts.taken == 4 && config.experts.whole_shares);
  EXPECT_THAT(config.windows, ElementsAre(128, 0));
  EXPECT_TRUE(config.rope.theta == 150000 && config.rope.scaling == rope_scaling::yarn && config.rope.factor == 32);
  EXPECT_TRUE(config.rope.original_context == 4096 && !config.rope.yarn.truncate);
  const json own = {{"swiglu_limit", 5.5},
                    {"attention_bias", false},
                    {"rope_scaling", {{"rope_type", "default"}}},
                    {"layer_types", {"full_attention", "sliding_attention"}},
                    {"sliding_window", 9}};
  const auto other = parse(with(with(small("gpt_oss"), sizes), own));
  EXPECT_TRUE(other.activation_limit == 5.5f && !other.qkv_bias && !other.out_bias && other.mlp_bias);
  EXPECT_EQ(other.rope.scaling, rope_scaling::none);
  EXPECT_THAT(other.windows, ElementsAre(0, 9));
  const json coded_as = coded({{"quant_method", "mxfp4"}});
  EXPECT_EQ(parse(with(with(small("gpt_oss"), sizes), coded_as)).codes.format, code_format::mxfp4);
}

INSTANTIATE_TEST_SUITE_P(
    cases, bad_config,
    ::testing::Values(
        bad_field{"unknown_type", "llama", {{"model_type", "mamba"}}, "supported are gpt2, llama, mistral"},
        bad_field{"no_type", "llama", {{"model_type", nullptr}}, "supported are"},
        bad_field{"other_head", "llama", {{"architectures", {"LlamaForSequenceClassification"}}}, "SequenceClass"},
        bad_field{"type_number", "llama", {{"model_type", 3}}, "model_type"},
        bad_field{"quantized_list", "llama", {{"quantization_config", {1}}}, "quantization_config"},
        bad_field{"quantized_strangely", "llama", coded({{"quant_method", "bitsandbytes"}}), "\"bitsandbytes\""},
        bad_field{"other_mxfp4", "llama",
                  coded({{"quant_method", "compressed-tensors"}, {"format", "mxfp4-pack-quantized"}}),
                  "\"mxfp4-pack-quantized\", which is not supported"},
        bad_field{"gptq_width", "llama", coded({{"quant_method", "gptq"}, {"bits", 3}}), "weights of 3 bits"},
        bad_field{"gptq_format", "llama", coded({{"quant_method", "gptq"}, {"checkpoint_format", "marlin"}}), "marlin"},
        bad_field{"awq_version", "llama", coded({{"quant_method", "awq"}, {"version", "gemv"}}), "gemv"},
        bad_field{"fp8_type", "llama", coded({{"quant_method", "fp8"}, {"fmt", "e5m2"}}), "e5m2"},
        bad_field{"fp8_block", "llama", coded({{"quant_method", "fp8"}, {"weight_block_size", {0, 128}}}),
                  "weight_block_size"},
        bad_field{"compressed_sparse", "llama",
                  coded({{"quant_method", "compressed-tensors"}, {"format", "marlin-24"}}), "marlin-24"},
        bad_field{"compressed_turned", "llama",
                  coded({{"quant_method", "compressed-tensors"}, {"transform_config", {{"config_groups", 1}}}}),
                  "transform_config"},
        bad_field{"activation", "llama", {{"hidden_act", "gelu"}}, "hidden_act \"gelu\""},
        bad_field{"gpt2_activation", "gpt2", {{"activation_function", "relu"}}, "relu"},
        bad_field{"gpt2_scale", "gpt2", {{"scale_attn_by_inverse_layer_idx", true}}, "scale_attn_by_inverse"},
        bad_field{"gpt2_cross", "gpt2", {{"add_cross_attention", true}}, "add_cross_attention"},
        bad_field{"gpt2_heads", "gpt2", {{"n_head", 3}}, "does not split"},
        bad_field{"partial_rotary", "llama", {{"partial_rotary_factor", 0.5}}, "partial_rotary_factor"},
        bad_field{"yarn_factor", "qwen2", rope({{"type", "yarn"}}), "lacks \"factor\""},
        bad_field{"yarn_factor_low", "qwen2", rope({{"type", "yarn"}, {"factor", 0.5}}), "at least 1"},
        bad_field{"yarn_factor_giant", "qwen2", rope({{"type", "yarn"}, {"factor", 1e300}}), "the context is"},
        bad_field{"yarn_betas", "qwen2", rope({{"type", "yarn"}, {"factor", 4}, {"beta_fast", 0.5}}), "beta_fast 0.5"},
        bad_field{"yarn_beta_zero", "qwen2", rope({{"type", "yarn"}, {"factor", 4}, {"beta_slow", 0}}), "beta_slow 0"},
        bad_field{"yarn_attention", "qwen2", rope({{"type", "yarn"}, {"factor", 4}, {"attn_factor", 0}}), "attention"},
        bad_field{"yarn_mscale", "qwen2",
                  rope({{"type", "yarn"}, {"factor", 4}, {"mscale", -1}, {"mscale_all_dim", 1}}), "mscale -1"},
        bad_field{"yarn_original", "qwen2",
                  rope({{"type", "yarn"}, {"factor", 4}, {"original_max_position_embeddings", 0}}),
                  "original context is 0"},
        bad_field{"yarn_theta", "qwen2", rope({{"type", "yarn"}, {"factor", 4}, {"rope_theta", 1}}), "above 1"},
        bad_field{"proportional", "llama", rope({{"rope_type", "proportional"}}), "\"proportional\" is not supported"},
        bad_field{"ntk", "llama", rope({{"rope_type", "ntk"}}), "linear, llama3, yarn and longrope are"},
        bad_field{"longrope", "llama", rope({{"rope_type", "longrope"}}), "long_factor"},
        bad_field{"longrope_text", "phi3", rope({{"type", "su"}, {"long_factor", {"x"}}}), "list of numbers"},
        bad_field{"longrope_empty", "phi3", longrope(0), "longrope needs divisors"},
        bad_field{"longrope_short", "phi3", longrope(3), "3 rope frequency divisors for 1 pairs"},
        bad_field{"rotary_odd", "phi3", {{"partial_rotary_factor", 0.9}, {"head_dim", 6}}, "even part"},
        bad_field{"rotary_none", "phi3", {{"partial_rotary_factor", 0.1}, {"head_dim", 6}}, "leaves nothing"},
        bad_field{"rotary_part", "phi3", {{"partial_rotary_factor", 1.5}}, "partial_rotary_factor"},
        bad_field{"no_rope_list", "smollm3", {{"no_rope_layers", {1}}}, "no_rope_layers"},
        bad_field{"no_rope_zero", "smollm3", {{"no_rope_layer_interval", 0}}, "no_rope_layer_interval"},
        bad_field{"gemma_softcap", "gemma2", {{"final_logit_softcapping", -30.0}, {"head_dim", 4}}, "capped at -30"},
        bad_field{"gemma_both_ways", "gemma3_text", {{"use_bidirectional_attention", true}}, "use_bidirectional"},
        bad_field{"gemma_activation", "gemma3_text", {{"hidden_activation", "relu"}}, "relu"},
        bad_field{"gemma_pattern", "gemma3_text", {{"sliding_window_pattern", 0}}, "sliding_window_pattern"},
        bad_field{"granite_factor", "granite", {{"residual_multiplier", 0}}, "is 0, but should be 0.0001 to"},
        bad_field{"experts_zero", "mixtral", {{"num_local_experts", 0}}, "num_local_experts"},
        bad_field{"experts_many", "mixtral", {{"num_local_experts", 5000}}, "number of experts is 5000"},
        bad_field{"experts_taken", "mixtral", {{"num_experts_per_tok", 9}}, "experts for a token is 9"},
        bad_field{"clamped_limit", "gpt_oss", {{"swiglu_limit", 0}, {"head_dim", 4}}, "activation's limit is 0"},
        bad_field{"experts_nowhere", "qwen3_moe", {{"decoder_sparse_step", 0}}, "\"decoder_sparse_step\" is 0"},
        bad_field{"shared_giant", "qwen2_moe", {{"shared_expert_intermediate_size", 70000}}, "shared experts is 70000"},
        bad_field{"shared_many", "glm4_moe", {{"n_shared_experts", -1}}, "n_shared_experts"},
        bad_field{"expert_groups", "glm4_moe", {{"n_group", 3}, {"head_dim", 4}}, "128 experts in 3 groups"},
        bad_field{"shares_zero", "glm4_moe", {{"routed_scaling_factor", 0}, {"head_dim", 4}}, "multiplied by 0"},
        bad_field{"normed_heads", "cohere", {{"use_qk_norm", true}}, "use_qk_norm"},
        bad_field{"one_after_the_other", "cohere2", {{"use_parallel_block", false}}, "use_parallel_block"},
        bad_field{"clipped_heads", "olmoe", {{"clip_qkv", 8.0}}, "clip_qkv"},
        bad_field{"state_spaces_uneven", "granitemoehybrid", {{"mamba_n_heads", 7}}, "of a state space for 7 heads"},
        bad_field{
            "state_spaces_biased", "granitemoehybrid", {{"mamba_n_heads", 2}, {"mamba_proj_bias", true}}, "proj_bias"},
        bad_field{"experts_of_granite4", "granitemoehybrid", {{"num_local_experts", -1}}, "num_local_experts"},
        bad_field{"queries_nowhere", "ministral3",
                  rope({{"type", "linear"},
                        {"factor", 2},
                        {"llama_4_scaling_beta", 0.1},
                        {"original_max_position_embeddings", 0}}),
                  "original context is 0"},
        bad_field{"queries", "ministral3", rope({{"type", "default"}, {"llama_4_scaling_beta", -1}}), "grow by -1"},
        bad_field{"gemma3n", "gemma3_text", {{"model_type", "gemma3n_text"}}, "\"gemma3n_text\""},
        bad_field{"linear_factor", "llama", rope({{"type", "linear"}}), "lacks \"factor\""},
        bad_field{"linear_zero", "llama", rope({{"type", "linear"}, {"factor", 0}}), "factor is 0"},
        bad_field{"llama3_fields", "llama", rope({{"rope_type", "llama3"}, {"factor", 8}}), "low_freq_factor"},
        bad_field{"llama3_order", "llama",
                  rope({{"rope_type", "llama3"}, {"factor", 8}, {"low_freq_factor", 4}, {"high_freq_factor", 4}}),
                  "above low_freq_factor"},
        bad_field{"rope_list", "llama", rope({1, 2}), "rope parameters"},
        bad_field{"rope_by_layer", "llama", {{"rope_parameters", {{"full_attention", json::object()}}}}, "by layer"},
        bad_field{"theta", "llama", {{"rope_theta", -1}}, "rope_theta"},
        bad_field{"theta_text", "llama", {{"rope_theta", "1e4"}}, "rope_theta"},
        bad_field{"hidden_zero", "llama", {{"hidden_size", 0}}, "hidden_size"},
        bad_field{"hidden_text", "llama", {{"hidden_size", "8"}}, "\"hidden_size\" should be an integer"},
        bad_field{"hidden_float", "llama", {{"hidden_size", 8.5}}, "hidden_size"},
        bad_field{"hidden_large", "llama", {{"hidden_size", 60000}}, "hidden size is 60000"},
        bad_field{"hidden_giant", "llama", {{"hidden_size", 1ull << 63}}, "hidden_size"},
        bad_field{"vocab_large", "llama", {{"vocab_size", (1 << 24) + 1}}, "vocab_size"},
        bad_field{"layers_large", "mistral", {{"num_hidden_layers", 1025}}, "number of layers"},
        bad_field{"layers_giant", "qwen2", {{"num_hidden_layers", 1ll << 40}}, "num_hidden_layers"},
        bad_field{"ffn_large", "llama", {{"intermediate_size", 70000}}, "intermediate size"},
        bad_field{"heads_uneven", "llama", {{"num_key_value_heads", 3}}, "share 3"},
        bad_field{"kv_above_heads", "llama", {{"num_key_value_heads", 8}}, "key-value heads"},
        bad_field{"head_dim_odd", "llama", {{"head_dim", 3}}, "even"},
        bad_field{"heads_above_hidden", "llama", {{"num_attention_heads", 16}}, "head_dim"},
        bad_field{"attention_wide", "llama", {{"num_attention_heads", 128}, {"head_dim", 512}}, "heads x head_dim"},
        bad_field{"context_negative", "llama", {{"max_position_embeddings", -1}}, "max_position_embeddings"},
        bad_field{"eps", "llama", {{"rms_norm_eps", -1.0}}, "epsilon"},
        bad_field{"eos_text", "llama", {{"eos_token_id", "</s>"}}, "eos_token_id"},
        bad_field{"window", "mistral", {{"sliding_window", -5}}, "sliding window"},
        bad_field{"layer_types_count", "qwen3", {{"layer_types", {"full_attention"}}}, "layer_types"},
        bad_field{"layer_type", "qwen3", {{"layer_types", {"full_attention", "mamba"}}}, "\"mamba\""},
        bad_field{"tie_text", "llama", {{"tie_word_embeddings", "yes"}}, "tie_word_embeddings"}),
    [](const auto& info) { return info.param.name; });

TEST(hf_config, broken_json_is_refused) {
  const auto says = [](const std::string& text) { return refusal([&] { parse_hf_config(text, "config.json"); }); };
  EXPECT_THAT(says("{"), HasSubstr("no valid JSON"));
  EXPECT_THAT(says(""), HasSubstr("no valid JSON"));
  EXPECT_THAT(says("[]"), HasSubstr("JSON object"));
  EXPECT_THAT(says("{\"a\":1,\"a\":2}"), HasSubstr("twice"));
  EXPECT_THAT(says(std::string(1 << 20, '[')), HasSubstr("deeper"));
  EXPECT_THAT(says("{\"a\":\"\xff\"}"), HasSubstr("no valid JSON"));
  EXPECT_EQ(says("{} trailing").find('\n'), std::string::npos);
}

}  // namespace
}  // namespace troupe
