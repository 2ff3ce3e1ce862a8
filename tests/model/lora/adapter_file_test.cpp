#include "model/lora/adapter_file.hpp"
#include "base/to_size.hpp"

#include <cmath>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "tests/base/places.hpp"
#include "tests/model/formats/fixtures.hpp"

namespace troupe {
namespace {

using nlohmann::json;
using test::refusal;
using test::weight_writer;
using ::testing::AllOf;
using ::testing::HasSubstr;

model_config llama() {
  model_config config;
  config.family = "llama";
  config.vocab_size = 10, config.hidden = 8, config.layers = 2, config.heads = 4, config.kv_heads = 2;
  config.head_dim = 2, config.ffn = 12, config.context = 64;
  return config;
}

model_config gpt2_small() {
  model_config config;
  config.family = "gpt2";
  config.vocab_size = 50257, config.hidden = 768, config.layers = 12, config.heads = 12, config.kv_heads = 12;
  config.head_dim = 64, config.ffn = 3072, config.context = 1024;
  config.gated_mlp = false;
  return config;
}

const std::string q0 = "base_model.model.model.layers.0.self_attn.q_proj.";
const std::string down1 = "base_model.model.model.layers.1.mlp.down_proj.";

const json plain = {{"peft_type", "LORA"}, {"r", 4}, {"lora_alpha", 8}, {"bias", "none"}};

json with(json base, const json& more) {
  base.update(more);
  return base;
}

weight_writer q_adapter(std::int64_t rank = 4) {
  weight_writer file;
  file.add(q0 + "lora_A.weight", {rank, 8});
  file.add(q0 + "lora_B.weight", {8, rank});
  return file;
}

adapter_file read(const json& config, const weight_writer& weights, const model_config& base = llama()) {
  const test::temp_folder folder;
  folder.write("adapter_config.json", config.dump());
  weights.write(folder.path() / "adapter_model.safetensors");
  return read_adapter(folder.path(), base);
}

std::string refusal_of(const json& config, const weight_writer& weights, const model_config& base = llama()) {
  return refusal([&] { read(config, weights, base); });
}

TEST(adapter_file, reads_modules_in_the_order_of_the_layers) {
  auto weights = q_adapter();
  weights.add(down1 + "lora_A.default.weight", {4, 12});
  weights.add(down1 + "lora_B.default.weight", {8, 4});
  const auto adapter = read(plain, weights);
  ASSERT_EQ(adapter.parts.size(), 2u);
  const auto& part = adapter.parts[0];
  EXPECT_EQ(part.name(), "model.layers.0.self_attn.q_proj");
  EXPECT_EQ(part.rank, 4);
  EXPECT_EQ(part.scale, 2.0f);
  ASSERT_EQ(part.a.size(), 32u);
  EXPECT_EQ(part.a[0], 0.25f);
  EXPECT_EQ(part.b[0], 33 * 0.25f);
  EXPECT_EQ(adapter.parts[1].name(), "model.layers.1.mlp.down_proj");
  EXPECT_EQ(adapter.parts[1].a.size(), 48u);
}

TEST(adapter_file, scale_follows_alpha_rank_and_rslora) {
  EXPECT_EQ(read(with(plain, {{"lora_alpha", 6.0}}), q_adapter()).parts[0].scale, 1.5f);
  EXPECT_EQ(read(with(plain, {{"use_rslora", true}}), q_adapter()).parts[0].scale, 4.0f);
}

TEST(adapter_file, patterns_override_rank_and_alpha_by_module) {
  const auto scale = [](const json& more) { return read(with(plain, more), q_adapter(2)).parts[0].scale; };
  EXPECT_EQ(scale({{"rank_pattern", {{"q_proj", 2}}}}), 4.0f);
  EXPECT_EQ(scale({{"rank_pattern", {{"self_attn.q_proj", 2}}}, {"alpha_pattern", {{".*q_pro[jk]", 32}}}}), 16.0f);
  EXPECT_EQ(scale({{"rank_pattern", {{"^model.layers.0.self_attn.q_proj", 2}}}}), 4.0f);
  EXPECT_EQ(scale({{"rank_pattern", {{"q_proj|k_proj", 2}}}}), 4.0f);
  // Part of a name does not count, and the pattern must reach the end.
  EXPECT_THAT(refusal_of(with(plain, {{"rank_pattern", {{"_proj", 2}}}}), q_adapter(2)), HasSubstr("[4, 8]"));
  EXPECT_THAT(refusal_of(with(plain, {{"rank_pattern", {{"self_attn", 2}}}}), q_adapter(2)), HasSubstr("[4, 8]"));
}

TEST(adapter_file, the_first_pattern_that_fits_counts) {
  const test::temp_folder folder;
  folder.write("adapter_config.json",
               R"({"peft_type":"LORA","r":4,"lora_alpha":4,"alpha_pattern":{"q_proj":40,".*":8}})");
  q_adapter().write(folder.path() / "adapter_model.safetensors");
  EXPECT_EQ(read_adapter(folder.path(), llama()).parts[0].scale, 10.0f);
  folder.write(
      "adapter_config.json",
      R"({"peft_type":"LORA","r":4,"lora_alpha":4,"alpha_pattern":{"q_proj$x":1,"z.*":2,".*":8,"q_proj":40}})");
  EXPECT_EQ(read_adapter(folder.path(), llama()).parts[0].scale, 2.0f);
}

TEST(adapter_file, hostile_patterns_are_refused) {
  EXPECT_THAT(refusal_of(with(plain, {{"rank_pattern", {{"(", 2}}}}), q_adapter()), HasSubstr("regular expression"));
  EXPECT_THAT(refusal_of(with(plain, {{"rank_pattern", {{"(([a-z_.0-9]+)+)+[!?]", 2}}}}), q_adapter()),
              HasSubstr("too long to match"));
  EXPECT_THAT(refusal_of(with(plain, {{"rank_pattern", {{std::string(5000, 'a'), 2}}}}), q_adapter()),
              HasSubstr("rank_pattern"));
}

TEST(adapter_file, gpt2_names_become_ours) {
  auto base = gpt2_small();
  base.hidden = 4, base.heads = base.kv_heads = 2, base.head_dim = 2, base.ffn = 16;
  for (const std::string prefix : {"transformer.", ""}) {
    weight_writer file;
    const auto layer = "base_model.model." + prefix + "h.3.";
    const auto add = [&](const std::string& name, std::int64_t ins, std::int64_t outs) {
      file.add(layer + name + ".lora_A.weight", {4, ins});
      file.add(layer + name + ".lora_B.weight", {outs, 4});
    };
    add("attn.c_attn", 4, 12), add("attn.c_proj", 4, 4), add("mlp.c_fc", 4, 16), add("mlp.c_proj", 16, 4);
    const auto parts = read(plain, file, base).parts;
    std::vector<std::string> names;
    for (const auto& part : parts) names.emplace_back(name_of(part.kind));
    EXPECT_THAT(names, ::testing::ElementsAre("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj",
                                              "self_attn.o_proj", "mlp.up_proj", "mlp.down_proj"));
    EXPECT_EQ(parts[0].a, parts[2].a);
    EXPECT_EQ(parts[1].b.front(), parts[0].b.back() + 0.25f);
    EXPECT_EQ(parts[2].b.size(), 16u);
  }
}

class adapters_of_gemma : public testing::TestWithParam<const char*> {};

TEST_P(adapters_of_gemma, may_be_of_a_model_that_sees_pictures_whose_layers_have_longer_names) {
  auto gemma = llama();
  gemma.family = GetParam();
  for (const std::string before : {"model.", "model.language_model.", "language_model.model."}) {
    weight_writer file;
    file.add("base_model.model." + before + "layers.1.self_attn.q_proj.lora_A.weight", {4, 8});
    file.add("base_model.model." + before + "layers.1.self_attn.q_proj.lora_B.weight", {8, 4});
    EXPECT_EQ(read(plain, file, gemma).parts.at(0).name(), "model.layers.1.self_attn.q_proj") << before;
    if (before == "model.")
      EXPECT_EQ(refusal_of(plain, file), "") << "llama's layers have this name alone";
    else
      EXPECT_THAT(refusal_of(plain, file), HasSubstr("which is no linear layer")) << before;
  }
}

INSTANTIATE_TEST_SUITE_P(families, adapters_of_gemma, testing::Values("gemma3", "gemma4"));

model_config with_linear_attention(const std::string& family) {
  auto base = llama();
  base.family = family, base.attention_gate = true;
  base.mixers.assign(to_size(base.layers), mixer_kind::delta);
  base.delta = {.key_heads = 2, .value_heads = 4, .key_dim = 16, .value_dim = 16, .kernel = 4};
  return base;
}

TEST(adapter_file, projections_that_qwen3next_has_as_one_are_split_and_put_in_our_order) {
  const auto base = with_linear_attention("qwen3next");
  weight_writer file;
  const std::string module = "base_model.model.model.layers.0.linear_attn.in_proj_qkvz";
  file.add(module + ".lora_A.weight", {4, 8});
  file.add(module + ".lora_B.weight", {128 + 64, 4});
  const auto parts = read(plain, file, base).parts;
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_EQ(parts[0].kind, linear_kind::delta_qkv);
  EXPECT_EQ(parts[1].kind, linear_kind::delta_z);
  const auto row = [&](const adapter_part& part, std::int64_t at) { return (part.b[to_size(at * 4)] - parts[0].b[0]); };
  EXPECT_EQ(row(parts[0], 16), 96) << "the second head's query, behind all that the first has";
  EXPECT_EQ(row(parts[0], 64), 32) << "the first head's values";
  EXPECT_EQ(row(parts[1], 0), 64) << "and its z";
}

TEST(adapter_file, of_a_folder_has_the_heads_of_linear_attention_in_another_order_than_a_gguf_base) {
  auto base = with_linear_attention("qwen35");
  base.delta.in_turn = true;
  weight_writer file;
  const std::string layer = "base_model.model.model.layers.0.linear_attn.";
  for (const std::string side : {".lora_A.weight", ".lora_B.weight"}) {
    const bool is_a = side == ".lora_A.weight";
    file.add(layer + "in_proj_a" + side, {4, is_a ? 8 : 4});
    file.add(layer + "out_proj" + side, is_a ? std::vector<std::int64_t>{4, 64} : std::vector<std::int64_t>{8, 4});
  }
  const auto parts = read(plain, file, base).parts;
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_EQ(parts[0].b[4] - parts[0].b[0], 2) << "the first head of the second key head";
  EXPECT_EQ(parts[1].a[16] - parts[1].a[0], 32 * 0.25f) << "likewise of what goes in";
  EXPECT_EQ(parts[1].a[64 + 16] - parts[1].a[64], 32 * 0.25f);
}

TEST(adapter_file, queries_that_come_with_gates_are_put_in_our_order) {
  auto base = llama();
  base.family = "qwen35", base.attention_gate = true;
  weight_writer file;
  const std::string module = "base_model.model.model.layers.0.self_attn.q_proj";
  file.add(module + ".lora_A.weight", {4, 8});
  file.add(module + ".lora_B.weight", {16, 4});
  const auto part = read(plain, file, base).parts.at(0);
  const auto first = [&](std::int64_t row) { return part.b[to_size(row * 4)] - part.b[0]; };
  const std::int64_t dim = base.head_dim;
  EXPECT_EQ(first(dim), 4 * 0.25f * static_cast<float>(2 * dim)) << "the second head's query, behind the first's gate";
  EXPECT_EQ(first(8), 4 * 0.25f * static_cast<float>(dim)) << "the first head's gate";
}

TEST(adapter_file, a_layer_that_is_adapted_under_two_names_is_refused) {
  model_config gemma = llama();
  gemma.family = "gemma3";
  auto weights = q_adapter();
  const std::string again = "base_model.model.model.language_model.layers.0.self_attn.q_proj.";
  weights.add(again + "lora_A.weight", {4, 8});
  weights.add(again + "lora_B.weight", {8, 4});
  EXPECT_THAT(refusal_of(plain, weights, gemma), HasSubstr("adapts model.layers.0.self_attn.q_proj twice"));
}

TEST(adapter_file, modules_that_a_phi3_has_as_one_are_split) {
  auto phi3 = llama();
  phi3.family = "phi3";
  weight_writer file;
  const std::string layer = "base_model.model.model.layers.0.";
  file.add(layer + "self_attn.qkv_proj.lora_A.weight", {4, 8});
  file.add(layer + "self_attn.qkv_proj.lora_B.weight", {8 + 4 + 4, 4});
  file.add(layer + "mlp.gate_up_proj.lora_A.weight", {4, 8});
  file.add(layer + "mlp.gate_up_proj.lora_B.weight", {12 + 12, 4});
  const auto parts = read(plain, file, phi3).parts;
  std::vector<std::string> names;
  for (const auto& part : parts) names.emplace_back(name_of(part.kind));
  EXPECT_THAT(names, ::testing::ElementsAre("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "mlp.gate_proj",
                                            "mlp.up_proj"));
  EXPECT_EQ(parts[0].a, parts[2].a);
  EXPECT_EQ(parts[1].b.front(), parts[0].b.back() + 0.25f);
  EXPECT_EQ(parts[2].b.size(), 16u);
  EXPECT_EQ(parts[4].b.front(), parts[3].b.back() + 0.25f);
}

TEST(adapter_file, modules_are_those_that_the_configuration_targets) {
  const auto says = [](const json& targets) {
    return refusal_of(with(plain, {{"target_modules", targets}}), q_adapter());
  };
  for (const char* naming :
       {R"(["v_proj", "q_proj"])", R"(["self_attn.q_proj"])", R"(["model.layers.0.self_attn.q_proj"])",
        R"("all-linear")", R"(".*(v|q)_proj")", R"("model\\.layers\\.[\\d]{1,}\\.(?:mlp|self_attn)\\..*")", "null"})
    EXPECT_EQ(says(json::parse(naming)), "") << naming;
  for (const char* other : {R"(["v_proj"])", R"(["_proj"])", R"(["layers.1.self_attn.q_proj"])", "[]", R"(".*v_proj")",
                            R"("q_proj")", R"("model.*q_pro")"})
    EXPECT_THAT(says(json::parse(other)),
                AllOf(HasSubstr("\"model.layers.0.self_attn.q_proj\""), HasSubstr("target_modules")))
        << other;
  EXPECT_THAT(says("(" + std::string(9000, 'a')),
              AllOf(HasSubstr("no regular expression"), testing::SizeIs(testing::Lt(1000u))));
}

TEST(adapter_file, modules_that_the_configuration_leaves_out_are_refused_by_the_setting) {
  const auto says = [](const json& fields) { return refusal_of(with(plain, fields), q_adapter()); };
  for (const json& excluded : {json{"v_proj", "q_proj"}, json(R"(.*\.0\..*)")})
    EXPECT_THAT(says({{"exclude_modules", excluded}}), HasSubstr("\"exclude_modules\"")) << excluded;
  for (const json& kept : {json{"v_proj"}, json("q_proj"), json::array(), json()})
    EXPECT_EQ(says({{"exclude_modules", kept}}), "") << kept;
  for (const json& layers : {json(1), json{1, 2}})
    EXPECT_THAT(says({{"layers_to_transform", layers}}), HasSubstr("\"layers_to_transform\"")) << layers;
  for (const json& layers : {json(0), json{1, 0}, json::array(), json()})
    EXPECT_EQ(says({{"layers_to_transform", layers}}), "") << layers;
  const auto of_layer_1 = [&](const std::string& target) {
    return says({{"layers_to_transform", 1}, {"target_modules", json::array({target})}});
  };
  EXPECT_THAT(of_layer_1("0.self_attn.q_proj"), HasSubstr("\"layers_to_transform\""));
  EXPECT_EQ(of_layer_1("model.layers.0.self_attn.q_proj"), "") << "whole names are taken in every layer";
}

struct bad_setting {
  std::string name;
  json fields;
  std::string says;
};
class bad_adapter_config : public ::testing::TestWithParam<bad_setting> {};

TEST_P(bad_adapter_config, is_refused_by_the_field) {
  EXPECT_THAT(refusal_of(with(plain, GetParam().fields), q_adapter()),
              AllOf(HasSubstr("adapter_config.json"), HasSubstr(GetParam().says)));
}

INSTANTIATE_TEST_SUITE_P(
    cases, bad_adapter_config,
    ::testing::Values(bad_setting{"other_type", {{"peft_type", "IA3"}}, "IA3"},
                      bad_setting{"no_type", {{"peft_type", nullptr}}, "peft_type"},
                      bad_setting{"dora", {{"use_dora", true}}, "use_dora"},
                      bad_setting{"bias", {{"bias", "lora_only"}}, "lora_only"},
                      bad_setting{"lora_bias", {{"lora_bias", true}}, "lora_bias"},
                      bad_setting{"saved_modules", {{"modules_to_save", {"lm_head"}}}, "modules_to_save"},
                      bad_setting{"replication", {{"layer_replication", {{0, 1}}}}, "layer_replication"},
                      bad_setting{"token_indices", {{"trainable_token_indices", {1}}}, "trainable_token_indices"},
                      bad_setting{"parameters", {{"target_parameters", {"x"}}}, "target_parameters"},
                      bad_setting{"alora", {{"alora_invocation_tokens", {1}}}, "alora_invocation_tokens"},
                      bad_setting{"pissa", {{"init_lora_weights", "pissa_niter_4"}}, "pissa_niter_4"},
                      bad_setting{"lora_ga", {{"init_lora_weights", "lora_ga"}}, "lora_ga"},
                      bad_setting{"olora", {{"init_lora_weights", "OLoRA"}}, "OLoRA"},
                      bad_setting{"rank_0", {{"r", 0}}, "\"r\" is 0"}, bad_setting{"rank_text", {{"r", "8"}}, "\"r\""},
                      bad_setting{"rank_huge", {{"r", 1ll << 40}}, "\"r\""},
                      bad_setting{"rank_above_most", {{"r", 513}}, "\"r\" is 513, but should be 1 to 512"},
                      bad_setting{"alpha_text", {{"lora_alpha", "8"}}, "lora_alpha"},
                      bad_setting{"pattern_list", {{"rank_pattern", {1}}}, "rank_pattern"},
                      bad_setting{"pattern_value", {{"rank_pattern", {{"q_proj", "x"}}}}, "q_proj"},
                      bad_setting{"pattern_null", {{"alpha_pattern", {{"q_proj", nullptr}}}}, "q_proj"},
                      bad_setting{"pattern_zero", {{"rank_pattern", {{"q_proj", 0}}}}, "q_proj"}),
    [](const auto& info) { return info.param.name; });

TEST(adapter_file, settings_that_change_nothing_are_accepted) {
  EXPECT_EQ(refusal_of(with(plain, {{"modules_to_save", json::array()},
                                    {"use_dora", false},
                                    {"init_lora_weights", "gaussian"},
                                    {"fan_in_fan_out", true},
                                    {"layer_replication", nullptr}}),
                       q_adapter()),
            "");
}

TEST(adapter_file, tensors_that_do_not_fit_are_refused_by_name) {
  const auto says = [](const std::string& name, std::vector<std::int64_t> shape, dtype type = dtype::f32) {
    auto weights = q_adapter();
    weights.erase(name);
    if (!shape.empty()) weights.add(name, std::move(shape), type);
    return refusal_of(plain, weights);
  };
  EXPECT_THAT(says(q0 + "lora_A.weight", {}), HasSubstr("only one of lora_A and lora_B"));
  EXPECT_THAT(says(q0 + "lora_B.weight", {}), HasSubstr("only one of lora_A and lora_B"));
  EXPECT_THAT(says(q0 + "lora_A.weight", {4, 9}),
              AllOf(HasSubstr("q_proj.lora_A"), HasSubstr("[4, 8]"), HasSubstr("[4, 9]")));
  EXPECT_THAT(says(q0 + "lora_A.weight", {2, 8}), HasSubstr("[4, 8]"));
  EXPECT_THAT(says(q0 + "lora_B.weight", {4, 8}), HasSubstr("[8, 4]"));
  EXPECT_THAT(says(q0 + "lora_B.weight", {32}), HasSubstr("[8, 4]"));
  EXPECT_THAT(says(q0 + "lora_A.weight", {4, 8}, dtype::i8), HasSubstr("I8"));
  EXPECT_THAT(says(q0 + "lora_A.default.weight", {4, 8}), HasSubstr("two tensors"));
  EXPECT_THAT(says(q0 + "lora_magnitude_vector", {8}), HasSubstr("lora_magnitude_vector"));
  EXPECT_THAT(says("base_model.model.model.embed_tokens.lora_embedding_A", {4, 8}), HasSubstr("lora_embedding_A"));
  EXPECT_THAT(says("base_model.model.lm_head.base_layer.weight", {10, 8}), HasSubstr("the head and the embeddings"));
  EXPECT_THAT(says("base_model.model.model.embed_tokens.weight", {10, 8}), HasSubstr("save_embedding_layers=False"));
  EXPECT_THAT(says("model.layers.0.self_attn.q_proj.lora_A.weight", {4, 8}),
              HasSubstr("lacks PEFT's prefix base_model.model.: "));
  EXPECT_THAT(says("stray", {1}), HasSubstr("\"stray\" is no lora_A.weight"));
}

TEST(adapter_file, what_latent_attention_computes_head_by_head_is_refused) {
  model_config base = llama();
  base.latent.rank = 16;
  weight_writer file;
  file.add("base_model.model.model.layers.0.self_attn.kv_b_proj.lora_A.weight", {4, 8});
  file.add("base_model.model.model.layers.0.self_attn.kv_b_proj.lora_B.weight", {8, 4});
  EXPECT_THAT(refusal_of(plain, file, base), AllOf(HasSubstr("head by head"), HasSubstr("kv_a_proj_with_mqa")));
}

TEST(adapter_file, layers_that_the_base_lacks_are_refused_by_name) {
  for (const std::string module :
       {"model.layers.2.self_attn.q_proj", "model.layers.x.self_attn.q_proj", "model.layers.0.self_attn.z_proj",
        "lm_head", "model.layers.99999999999999999999.self_attn.q_proj", "model.layers.-1.self_attn.q_proj",
        "model.layers.0", "transformer.h.0.attn.c_attn", ""}) {
    weight_writer file;
    file.add("base_model.model." + module + ".lora_A.weight", {4, 8});
    file.add("base_model.model." + module + ".lora_B.weight", {8, 4});
    EXPECT_THAT(refusal_of(plain, file), HasSubstr("\"" + module + "\", which is no linear layer")) << module;
  }
}

TEST(adapter_file, values_that_are_not_finite_are_refused) {
  const test::temp_folder folder;
  folder.write("adapter_config.json", plain.dump());
  std::vector<float> a(32, 1.0f), b(32, NAN);
  const std::vector<tensor_description> tensors = {{q0 + "lora_A.weight", dtype::f32, {4, 8}},
                                                   {q0 + "lora_B.weight", dtype::f32, {8, 4}}};
  const std::vector<std::span<const std::byte>> data = {std::as_bytes(std::span(a)), std::as_bytes(std::span(b))};
  write_safetensors(folder.path() / "adapter_model.safetensors", tensors, data, {});
  EXPECT_THAT(refusal([&] { read_adapter(folder.path(), llama()); }), HasSubstr("not finite"));
}

TEST(adapter_file, missing_files_are_named) {
  const test::temp_folder folder;
  EXPECT_THAT(refusal([&] { read_adapter(folder.path() / "nowhere", llama()); }),
              HasSubstr("nowhere: there is none: name a folder"));
  EXPECT_THAT(refusal([&] { read_adapter(folder.path(), llama()); }), HasSubstr("adapter_config.json"));
  folder.write("adapter_config.json", plain.dump());
  EXPECT_THAT(refusal([&] { read_adapter(folder.path(), llama()); }), HasSubstr("adapter_model.safetensors"));
  EXPECT_THAT(refusal([&] { read_adapter(folder.path() / "adapter_config.json", llama()); }),
              HasSubstr("is a file: name the folder"));
  folder.write("adapter_model.bin", "x");
  EXPECT_THAT(refusal([&] { read_adapter(folder.path(), llama()); }), HasSubstr("pickled"));
  weight_writer().write(folder.path() / "adapter_model.safetensors");
  EXPECT_THAT(refusal([&] { read_adapter(folder.path(), llama()); }), HasSubstr("no adapted layer"));
}

TEST(adapter_file, a_published_gpt2_adapter_is_read) {
  const std::filesystem::path path = test::shared_data / "lora/gpt2_tigrinya";
  if (!std::filesystem::exists(path)) GTEST_SKIP() << path << " is absent";
  const auto adapter = read_adapter(path, gpt2_small());
  ASSERT_EQ(adapter.parts.size(), 12u * 5u);
  EXPECT_EQ(adapter.parts[3].name(), "model.layers.0.self_attn.o_proj");
  EXPECT_EQ(adapter.parts[5].name(), "model.layers.1.self_attn.q_proj");
  for (const auto& part : adapter.parts) {
    EXPECT_EQ(part.rank, 8);
    EXPECT_EQ(part.scale, 4.0f);
    EXPECT_EQ(part.b.size(), 768u * 8u);
  }
  auto shallow = gpt2_small();
  shallow.layers = 11;
  EXPECT_THAT(refusal([&] { read_adapter(path, shallow); }), HasSubstr("h.11."));
}

}  // namespace
}  // namespace troupe
