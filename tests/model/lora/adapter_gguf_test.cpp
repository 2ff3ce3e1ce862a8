// Adapters as GGUF files, as llama.cpp's converter writes them.
#include "model/lora/adapter_gguf.hpp"

#include <limits>

#include <gmock/gmock.h>

#include "base/half.hpp"
#include "model/formats/hf/hf_config.hpp"
#include "model/lora/adapter_write.hpp"
#include "tests/base/places.hpp"
#include "tests/model/lora/gguf_adapter.hpp"

namespace troupe {
namespace {

using test::gguf_builder;
using test::golden;
using test::raw;
using test::refusal;
using testing::AllOf;
using testing::HasSubstr;

struct golden_adapter {
  const char *model, *architecture;
};

class gguf_adapters : public testing::TestWithParam<golden_adapter> {
 protected:
  adapter_file read(const std::string& file, const model_config& base) const {
    return read_adapter(folder_.write("adapter.gguf", file), base);
  }

  test::temp_folder folder_;
};

void expect_same(const adapter_file& got, const adapter_file& wanted) {
  ASSERT_EQ(got.parts.size(), wanted.parts.size());
  for (std::size_t i = 0; i < wanted.parts.size(); ++i) {
    const adapter_part &x = got.parts[i], &y = wanted.parts[i];
    EXPECT_EQ(x.name(), y.name());
    EXPECT_EQ(x.rank, y.rank) << y.name();
    EXPECT_EQ(x.a, y.a) << y.name();
    EXPECT_EQ(x.b, y.b) << y.name();
  }
}

TEST_P(gguf_adapters, have_the_factors_that_peft_has_and_alpha_over_rank) {
  const auto peft = golden / GetParam().model / "adapter";
  const model_config base = read_hf_config(golden / GetParam().model);
  const adapter_file wanted = read_adapter(peft, base);
  const std::string bytes = test::gguf_adapter(peft, base, GetParam().architecture).build();
  const adapter_file got = read(bytes, base);
  expect_same(got, wanted);
  expect_same(read_adapter(folder_.write("without an ending", bytes), base), wanted);
  for (const adapter_part& part : got.parts)
    EXPECT_EQ(part.scale, static_cast<float>(wanted.factors.alpha / static_cast<double>(part.rank)));
}

TEST_P(gguf_adapters, are_written_again_as_peft_has_them) {
  const auto peft = golden / GetParam().model / "adapter";
  const model_config base = read_hf_config(golden / GetParam().model);
  const adapter_file file = read(test::gguf_adapter(peft, base, GetParam().architecture).build(), base);
  std::filesystem::create_directories(folder_.path() / "again");
  write_adapter(file, base, folder_.path() / "again", "it");
  const adapter_file again = read_adapter(folder_.path() / "again", base);
  expect_same(again, file);
  for (std::size_t i = 0; i < file.parts.size(); ++i) EXPECT_EQ(again.parts[i].scale, file.parts[i].scale);
  EXPECT_EQ(again.factors.rank_pattern, file.factors.rank_pattern);
  EXPECT_EQ(again.factors.alpha_pattern, file.factors.alpha_pattern);
}

INSTANTIATE_TEST_SUITE_P(
    architectures, gguf_adapters,
    testing::Values(
        golden_adapter{"llama", "llama"}, golden_adapter{"mistral", "llama"}, golden_adapter{"mixtral", "llama"},
        golden_adapter{"ministral3", "mistral3"}, golden_adapter{"qwen2", "qwen2"}, golden_adapter{"qwen3", "qwen3"},
        golden_adapter{"phi3", "phi3"}, golden_adapter{"smollm3", "smollm3"}, golden_adapter{"gemma2", "gemma2"},
        golden_adapter{"gemma3", "gemma3"}, golden_adapter{"granite", "granite"},
        golden_adapter{"granite-moe", "granitemoe"}, golden_adapter{"granite-hybrid", "granite"},
        golden_adapter{"granite-h", "granitehybrid"}, golden_adapter{"granite-h-moe", "granitehybrid"},
        golden_adapter{"nemotron-h", "nemotron_h"}, golden_adapter{"nemotron-h-moe", "nemotron_h_moe"},
        golden_adapter{"olmo2", "olmo2"}, golden_adapter{"olmo3", "olmo2"}, golden_adapter{"olmoe", "olmoe"},
        golden_adapter{"qwen2-moe", "qwen2moe"}, golden_adapter{"qwen3-moe", "qwen3moe"},
        golden_adapter{"glm4-moe", "glm4moe"}, golden_adapter{"gpt-oss", "gpt-oss"}, golden_adapter{"glm", "chatglm"},
        golden_adapter{"glm4", "glm4"}, golden_adapter{"ernie", "ernie4_5"}, golden_adapter{"cohere", "command-r"},
        golden_adapter{"cohere2", "cohere2"}, golden_adapter{"deepseek3", "deepseek2"},
        golden_adapter{"qwen3-vl-moe", "qwen3vlmoe"}, golden_adapter{"seed-oss", "seed_oss"},
        golden_adapter{"arcee", "arcee"}, golden_adapter{"exaone4", "exaone4"},
        golden_adapter{"minimax-m2", "minimax-m2"}, golden_adapter{"ernie-moe", "ernie4_5-moe"}),
    [](const auto& info) {
      std::string name = info.param.model;
      std::replace(name.begin(), name.end(), '-', '_');
      return name;
    });

// ---- one file, changed ----

model_config small_llama() {
  model_config base;
  base.family = "llama", base.file.gguf_turns_neighbours = true;
  base.vocab_size = 10, base.hidden = 32, base.layers = 2, base.heads = 4, base.kv_heads = 2;
  base.head_dim = 8, base.ffn = 64, base.context = 64;
  return base;
}

gguf_builder head_of(const std::string& architecture = "llama", float alpha = 8) {
  gguf_builder file;
  file.string("general.architecture", architecture).string("general.type", "adapter").string("adapter.type", "lora");
  return file.f32("adapter.lora.alpha", alpha);
}

void add_factors(gguf_builder& file, const std::string& name, std::uint64_t ins, std::uint64_t outs,
                 std::uint64_t rank) {
  file.floats(name + ".lora_a", {ins, rank}).floats(name + ".lora_b", {rank, outs}, 100);
}

class changed_gguf_adapter : public testing::Test {
 protected:
  adapter_file read(const gguf_builder& file) const {
    return read_adapter(folder_.write("pricing.gguf", file.build()), base_);
  }
  std::string says(const gguf_builder& file) const {
    return refusal([&] { read(file); });
  }

  test::temp_folder folder_;
  model_config base_ = small_llama();
};

model_config small_delta_model(const std::string& family) {
  model_config base = small_llama();
  base.family = family;
  base.mixers.assign(2, mixer_kind::delta);
  base.delta = {.key_heads = 2, .value_heads = 4, .key_dim = 16, .value_dim = 16, .kernel = 4};
  return base;
}

TEST_F(changed_gguf_adapter, of_qwen3next_has_what_a_head_projects_apart_or_as_an_older_converter_together) {
  base_ = small_delta_model("qwen3next");
  for (const bool joined : {false, true}) {
    base_.file.joined_qkv = !joined;  // whatever the base has
    auto file = head_of("qwen3next");
    if (joined) add_factors(file, "blk.0.ssm_in.weight", 32, 192, 2);
    if (!joined) add_factors(file, "blk.0.attn_qkv.weight", 32, 128, 2);
    if (!joined) add_factors(file, "blk.0.attn_gate.weight", 32, 64, 2);
    const auto adapter = read(file);
    ASSERT_EQ(adapter.parts.size(), 2u);
    EXPECT_EQ(adapter.parts[0].kind, linear_kind::delta_qkv);
    EXPECT_EQ(adapter.parts[1].kind, linear_kind::delta_z);
    EXPECT_EQ(adapter.parts[1].b[0] - 100, joined ? 2 * 64 : 0) << "behind a head's query, key and values";
  }
}

TEST_F(changed_gguf_adapter, on_heads_that_a_folder_has_in_another_order_is_refused) {
  base_ = small_delta_model("qwen35");
  auto file = head_of("qwen35");
  add_factors(file, "blk.0.attn_gate.weight", 32, 64, 2);
  EXPECT_THAT(says(file), HasSubstr("adapts model.layers.0.linear_attn.in_proj_z, whose heads it has in another order "
                                    "than the base: load the folder that PEFT wrote"));
  base_.delta.in_turn = true;
  EXPECT_EQ(read(file).parts[0].kind, linear_kind::delta_z);
}

TEST_F(changed_gguf_adapter, may_have_ranks_of_its_own_everywhere) {
  auto file = head_of();
  add_factors(file, "blk.0.attn_v.weight", 32, 16, 2);
  add_factors(file, "blk.1.attn_v.weight", 32, 16, 4);
  const auto adapter = read(file);
  ASSERT_EQ(adapter.parts.size(), 2u);
  EXPECT_EQ(adapter.parts[0].scale, 4.0f);
  EXPECT_EQ(adapter.parts[1].scale, 2.0f);
  EXPECT_EQ(module_factors(adapter.factors, "it").rank_of("model.layers.1.self_attn.v_proj"), 4);
}

TEST_F(changed_gguf_adapter, without_an_alpha_has_a_scale_of_1) {
  auto file = head_of("llama", 0);
  add_factors(file, "blk.0.attn_v.weight", 32, 16, 2);
  add_factors(file, "blk.1.attn_v.weight", 32, 16, 4);
  const auto adapter = read(file);
  const module_factors rules(adapter.factors, "it");
  for (const adapter_part& part : adapter.parts) {
    EXPECT_EQ(part.scale, 1.0f);
    EXPECT_EQ(rules.scale_of(part.name()), 1.0f);
  }
}

TEST_F(changed_gguf_adapter, may_have_lost_a_first_size_of_1) {
  auto file = head_of();
  file.floats("blk.0.attn_v.weight.lora_a", {32}).floats("blk.0.attn_v.weight.lora_b", {1, 16});
  EXPECT_EQ(read(file).parts.at(0).rank, 1);
}

TEST_F(changed_gguf_adapter, may_have_factors_in_few_bits) {
  auto file = head_of();
  std::string halves, upper, blocks;
  for (int i = 0; i < 32 * 32; ++i) halves += raw(f32_to_f16(static_cast<float>(i)));
  for (int i = 0; i < 32 * 32; ++i) upper += raw(f32_to_bf16(static_cast<float>(i % 100)));
  for (int row = 0; row < 16; ++row) {
    blocks += raw(f32_to_f16(static_cast<float>(row)));
    for (int i = 0; i < 32; ++i) blocks += raw(static_cast<std::int8_t>(i));
  }
  file.tensor("blk.0.attn_v.weight.lora_a", {32, 32}, 1, halves)
      .tensor("blk.0.attn_v.weight.lora_b", {32, 16}, 8, blocks);
  file.tensor("blk.0.attn_output.weight.lora_a", {32, 32}, 30, upper)
      .tensor("blk.0.attn_output.weight.lora_b", {32, 32}, 30, upper);
  const auto adapter = read(file);
  EXPECT_EQ(adapter.parts.at(0).a[1023], 1023.0f);
  EXPECT_EQ(adapter.parts[0].b[15 * 32 + 31], 15.0f * 31.0f);
  EXPECT_EQ(adapter.parts.at(1).b[99], 99.0f);
}

TEST_F(changed_gguf_adapter, of_another_model_is_refused) {
  auto other = head_of("qwen2");
  add_factors(other, "blk.0.attn_v.weight", 32, 16, 2);
  EXPECT_THAT(says(other), AllOf(HasSubstr("pricing.gguf"), HasSubstr("\"qwen2\""), HasSubstr("base is llama")));
  auto wide = head_of();
  add_factors(wide, "blk.0.attn_v.weight", 32, 24, 2);
  EXPECT_THAT(says(wide), AllOf(HasSubstr("attn_v.weight.lora_b"), HasSubstr("[16, 2], but has [24, 2]")));
  auto long_rows = head_of();
  add_factors(long_rows, "blk.0.attn_v.weight", 40, 16, 2);
  EXPECT_THAT(says(long_rows), AllOf(HasSubstr("attn_v.weight.lora_a"), HasSubstr("[2, 32], but has [2, 40]")));
  auto deep = head_of();
  add_factors(deep, "blk.2.attn_v.weight", 32, 16, 2);
  EXPECT_THAT(says(deep), AllOf(HasSubstr("blk.2.attn_v"), HasSubstr("no such linear layer")));
}

TEST_F(changed_gguf_adapter, is_refused_by_the_tensor_that_cannot_be_applied) {
  const auto says_with = [&](const std::string& tensor) {
    auto file = head_of();
    add_factors(file, "blk.0.attn_v.weight", 32, 16, 2);
    file.floats(tensor, {32, 2});
    return says(file);
  };
  const std::pair<const char*, const char*> cases[] = {{"token_embd.weight.lora_a", "the head and the embeddings"},
                                                       {"output.weight.lora_b", "the head and the embeddings"},
                                                       {"blk.0.attn_norm.weight", "norms cannot be adapted"},
                                                       {"output_norm.weight", "norms cannot be adapted"},
                                                       {"blk.1.ffn_up_exps.weight.lora_a", "experts and their router"},
                                                       {"blk.1.ffn_gate_inp.weight.lora_a", "experts and their router"},
                                                       {"blk.1.attn_v.bias.lora_a", "no such linear layer"},
                                                       {"blk.1.attn_v.weight", "is no .lora_a or .lora_b"},
                                                       {"x", "is no .lora_a or .lora_b"}};
  for (const auto& [tensor, cause] : cases)
    EXPECT_THAT(says_with(tensor), AllOf(HasSubstr("pricing.gguf"), HasSubstr(tensor), HasSubstr(cause)));
  EXPECT_THAT(says_with("blk.1.attn_v.weight.lora_a"), HasSubstr("\"blk.1.attn_v.weight\" has only one of"));
}

TEST_F(changed_gguf_adapter, of_another_kind_is_refused_by_what_it_says_of_itself) {
  EXPECT_THAT(says(gguf_builder().string("general.architecture", "llama")),
              HasSubstr("pricing.gguf: is no adapter: its \"general.type\" is absent"));
  EXPECT_THAT(says(gguf_builder().string("general.type", "adapter").string("adapter.type", "control")),
              HasSubstr("\"adapter.type\" is control"));
  EXPECT_THAT(says(head_of()), HasSubstr("pricing.gguf: holds no adapted layer"));
  EXPECT_THAT(says(head_of("llama", std::numeric_limits<float>::infinity())), HasSubstr("not finite"));
  auto file = head_of();
  EXPECT_THAT(says(file.booleans("adapter.alora.invocation_tokens", {true})), HasSubstr("begin within a prompt"));
  base_.family = "gpt2";
  EXPECT_THAT(says(head_of("gpt2")), HasSubstr("load the folder that PEFT wrote"));
}

TEST_F(changed_gguf_adapter, has_finite_factors_of_a_rank_that_can_run) {
  auto file = head_of();
  file.floats("blk.0.attn_v.weight.lora_a", {32, 1})
      .tensor("blk.0.attn_v.weight.lora_b", {1, 16}, 0, std::string(64, '\xff'));
  EXPECT_THAT(says(file), AllOf(HasSubstr("attn_v.weight.lora_b"), HasSubstr("not finite")));
  auto large = head_of();
  add_factors(large, "blk.0.attn_v.weight", 32, 16, most_adapter_rank + 1);
  EXPECT_THAT(says(large), HasSubstr("has the rank 513"));
  auto none = head_of();
  none.floats("blk.0.attn_v.weight.lora_a", {32, 0}).floats("blk.0.attn_v.weight.lora_b", {0, 16});
  EXPECT_THAT(says(none), HasSubstr("has the rank 0"));
}

TEST_F(changed_gguf_adapter, must_adapt_whole_layers_of_peft_to_be_written_so) {
  base_.family = "granitehybrid";
  const auto written = [&](const gguf_builder& file) {
    return refusal([&] { write_adapter(read(file), base_, folder_.path(), "it"); });
  };
  auto half = head_of("granite");
  add_factors(half, "blk.0.ffn_gate.weight", 32, 64, 2);
  EXPECT_THAT(written(half), HasSubstr("it: adapts model.layers.0.mlp.gate_proj alone"));
  half.floats("blk.0.ffn_up.weight.lora_a", {32, 2}, 5).floats("blk.0.ffn_up.weight.lora_b", {2, 64});
  EXPECT_THAT(written(half), HasSubstr("different factors A"));
}

TEST_F(changed_gguf_adapter, beside_which_a_folder_was_named_is_named_in_the_error) {
  const auto says = [&] { return refusal([&] { read_adapter(folder_.path(), base_); }); };
  for (const char* name : {"imatrix.gguf", "mmproj-pricing.gguf"}) folder_.write(name, "");
  EXPECT_THAT(says(), HasSubstr("an adapter as PEFT writes it"));
  folder_.write("pricing.gguf", "");
  EXPECT_THAT(says(), AllOf(HasSubstr("has no adapter_config.json: name "), HasSubstr("/pricing.gguf")));
}

}  // namespace
}  // namespace troupe
