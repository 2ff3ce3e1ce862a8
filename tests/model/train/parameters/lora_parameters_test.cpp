#include "model/train/parameters/lora_parameters.hpp"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "model/formats/hf/hf_config.hpp"
#include "model/formats/json_input.hpp"
#include "model/formats/tensors/safetensors.hpp"
#include "model/train/parameters/master_weights.hpp"
#include "tests/base/refusal.hpp"
#include "tests/base/temp_folder.hpp"
#include "tests/model/train/passes/train_fixture.hpp"

namespace troupe {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

TEST(lora_parameters, unknown_targets_are_refused) {
  thread_pool pool(1);
  trained_model model = frozen(load_golden("llama", pool));
  EXPECT_THROW(lora_parameters(model, {.targets = {"c_attn"}}, 0), input_error);
}

TEST(lora_parameters, what_does_not_go_with_the_model_is_refused_with_what_there_is) {
  const model_config llama = read_hf_config(golden("llama")), gpt2 = read_hf_config(golden("gpt2"));
  lora_options options;
  options.targets = {"wat"};
  EXPECT_THAT([&] { check_lora(options, gpt2); },
              ThrowsMessage<input_error>(HasSubstr(
                  "\"wat\" fits no linear layer of the model: there are attn.c_attn, attn.c_proj, mlp.c_fc, ")));
  options.targets = {"q_proj", "v_proj"};
  options.factors.rank_pattern = {{"k_proj", 4}};
  EXPECT_THAT([&] { check_lora(options, llama); },
              ThrowsMessage<input_error>(HasSubstr(
                  "rank_of: the pattern \"k_proj\" fits no layer that is trained: there are self_attn.q_proj, "
                  "self_attn.v_proj")));
  options.factors.rank_pattern = {{"layers.1.self_attn.v_proj", 4}};
  options.factors.alpha_pattern = {{"(", 4}};
  EXPECT_THROW(check_lora(options, llama), input_error);
  options.factors.alpha_pattern.clear();
  // Ranks 8 on q [32,32] and v [16,32], but 4 on the second layer's v, in f32.
  EXPECT_EQ(check_lora(options, llama), 4u * (2 * 8 * 64 + (8 + 4) * 48));
  EXPECT_EQ(check_lora(options, llama, adapter_precision::half), 2u * (2 * 8 * 64 + (8 + 4) * 48));
  EXPECT_EQ(check_lora(options, llama, adapter_precision::byte), 1u * (2 * 8 * 64 + (8 + 4) * 48));
}

/// Who serves adapters would refuse one that has them.
TEST(lora_parameters, more_or_longer_patterns_than_an_adapter_may_have_are_refused) {
  const model_config llama = read_hf_config(golden("llama"));
  const auto said = [&](const lora_options& options) { return test::refusal([&] { check_lora(options, llama); }); };
  EXPECT_EQ(said({.targets = std::vector<std::string>(4096, "q_proj")}), "");
  EXPECT_EQ(said({.targets = std::vector<std::string>(4097, "q_proj")}),
            "the adapter has 4097 targets: use at most 4096");
  const std::vector<std::pair<std::string, double>> many(4097, {"q_proj", 1});
  EXPECT_THAT(said({.factors = {.alpha_pattern = many}}), HasSubstr("alpha_pattern: has more than 4096 patterns"));
  EXPECT_THAT(said({.factors = {.rank_pattern = {{std::string(1100, 'q') + "?q_proj", 4}}}}),
              HasSubstr("rank_pattern: has a pattern of more than 1024 bytes"));
}

TEST(lora_parameters, are_read_again_whatever_named_them) {
  const test::temp_folder folder;
  thread_pool pool(1);
  lora_options options;
  options.factors.rank = 4, options.factors.alpha = 8;
  for (const char* target : {"q_proj", "self_attn.._proj", "q.proj", "1.self_attn.v_proj"}) {
    trained_model model = frozen(load_golden("llama", pool));
    options.targets = {target};
    lora_parameters(model, options, 0).save(folder.path(), "llama");
    EXPECT_NO_THROW((void)read_adapter(folder.path(), model.config)) << target;
  }
}

TEST(lora_parameters, every_linear_layer_has_the_name_it_has_in_peft) {
  const test::temp_folder folder;
  thread_pool pool(1);
  trained_model model = frozen(load_golden("llama", pool)), same = frozen(load_golden("llama", pool));
  const lora_parameters unnamed(model, {}, 0), named(same, {.targets = {"all-linear"}}, 0);
  EXPECT_EQ(named.parameters().list().size(), unnamed.parameters().list().size());
  named.save(folder.path(), "llama");
  EXPECT_EQ(read_lora_options(folder.path(), same.config).targets.size(), unnamed.parameters().list().size() / 2);
}

/// PEFT's own factors, also where its class has the rows of q and k in another order.
TEST(lora_parameters, what_was_read_is_written_as_peft_has_it) {
  thread_pool pool(1);
  for (const char* name : {"gpt2", "llama", "phi3", "glm", "glm4", "ernie", "cohere", "cohere2", "qwen3.5",
                           "qwen3.5-moe", "qwen3-next", "lfm2"}) {
    const test::temp_folder folder;
    const auto peft = golden(name) / "adapter";
    trained_model model = frozen(load_golden(name, pool));
    lora_parameters lora(model, read_lora_options(peft, model.config), 1);
    lora.load(peft, model.config);
    lora.save(folder.path(), name);
    const tensor_set expected = open_safetensors(peft / adapter_weights_name),
                     written = open_safetensors(folder.path() / adapter_weights_name);
    ASSERT_EQ(written.tensors.size(), expected.tensors.size()) << name;
    for (const auto& [tensor, values] : expected.tensors) {
      ASSERT_NE(written.find(tensor), nullptr) << name << " " << tensor;
      EXPECT_TRUE(std::ranges::equal(written.find(tensor)->data, values.data)) << name << " " << tensor;
    }
  }
}

TEST(lora_parameters, what_the_reference_has_as_one_module_shares_a) {
  thread_pool pool(1);
  trained_model model = frozen(load_golden("phi3", pool));
  const lora_parameters lora(model, {.factors = {.rank = 3}}, 0);
  const trained_layer& layer = model.layers[1];
  EXPECT_EQ(lora.parameters().list().size(), 2u * 2 * 4);
  const parameter& b = *lora.parameters().find("base_model.model.model.layers.1.self_attn.qkv_proj.lora_B.weight");
  EXPECT_EQ(b.rows, 64 + 32 + 32);
  EXPECT_EQ(layer.k.lora.a, layer.q.lora.a);
  EXPECT_EQ(layer.v.lora.b, layer.q.lora.b + (64 + 32) * b.stride);
  EXPECT_EQ(layer.up.lora.b, layer.gate.lora.b + 40 * layer.gate.lora.stride);
}

TEST(lora_parameters, of_a_model_that_sees_pictures_are_named_as_peft_names_them_there) {
  const test::temp_folder folder;
  thread_pool pool(1);
  trained_model model = frozen(load_golden("gemma3", pool));
  model.config.file.sees_pictures = true;
  const lora_parameters lora(model, {.targets = {"q_proj"}}, 0);
  const std::string q0 = "model.language_model.layers.0.self_attn.q_proj";
  EXPECT_NE(lora.parameters().find("base_model.model." + q0 + ".lora_A.weight"), nullptr);
  lora.save(folder.path(), "gemma3");
  const auto written =
      detail::parse_adapter_config(detail::read_text(folder.path() / adapter_config_name, 1 << 16), "");
  EXPECT_TRUE(written.target_modules->holds(q0));
  EXPECT_FALSE(written.target_modules->holds("model.vision_tower.encoder.layers.0.self_attn.q_proj"));
  lora_parameters(model, read_lora_options(folder.path(), model.config), 1).load(folder.path(), model.config);
}

TEST(lora_parameters, patterns_choose_layers_and_ranks) {
  thread_pool pool(1);
  trained_model model = frozen(load_golden("llama", pool));
  const lora_options options{
      .factors = {.rank = 4, .alpha = 8, .rank_stabilized = true, .rank_pattern = {{"down_proj", 2}}},
      .targets = {"q_proj", "layers\\.1\\.mlp\\..*"}};
  const lora_parameters lora(model, options, 0);
  EXPECT_EQ(lora.parameters().list().size(), 2u * (2 + 3));
  EXPECT_EQ(model.layers[1].down.lora.rank, 2);
  EXPECT_EQ(model.layers[0].down.lora.rank, 0);
  EXPECT_FLOAT_EQ(model.layers[0].q.lora.scale, 4.0f);
}

}  // namespace
}  // namespace troupe
