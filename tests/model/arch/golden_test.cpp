// Tiny random models of every architecture against what the reference implementation computes for them
// (tests/fixtures/golden, made by scripts/make-golden).
#include <gtest/gtest.h>

#include "tests/model/arch/golden.hpp"
#include "tests/model/arch/models.hpp"

namespace troupe {
namespace {

class golden_model : public testing::TestWithParam<std::string> {
 protected:
  void compare(const std::string& prefix, const lora_adapter* adapter) {
    const tensor_set expected = open_safetensors(golden / GetParam() / "expected.safetensors");
    const auto prompt = values<std::int32_t>(expected, "prompt");
    EXPECT_LT(
        relative_error(logits_of(model_, prompt, {.adapter = adapter}), values<float>(expected, prefix + "logits")),
        1e-4);
    EXPECT_EQ(greedy_tokens(model_, prompt, 64, {.adapter = adapter}),
              values<std::int32_t>(expected, prefix + "greedy"));
  }

  std::shared_ptr<const loaded_model> model_ = load_for_test(golden / GetParam(), scheme::f32);
};

TEST_P(golden_model, gives_the_reference_logits_and_greedy_tokens) {
  compare("", nullptr);
}

TEST_P(golden_model, gives_the_reference_logits_and_greedy_tokens_with_an_adapter) {
  const lora_adapter adapter(read_adapter(golden / GetParam() / "adapter", model_->config), model_->config.layers);
  compare("adapter_", &adapter);
}

/// Of 256 positions the first 16 are the original ones, by which the short divisors are chosen.
TEST(longrope, goes_by_the_context_that_was_asked_for_and_not_by_the_room) {
  const auto model = load_for_test(golden / "phi3", scheme::f32);
  thread_pool pool(2);
  const auto logits = [&](std::int64_t positions, std::int64_t context) {
    single_sequence sequence(model, {.positions = positions, .kv = kv_kind::f32, .context = context},
                             {pool, kernels()});
    const auto last = sequence.feed(std::vector<std::int32_t>{5, 7, 9, 11, 13, 17});
    return std::vector<float>(last.begin(), last.end());
  };
  EXPECT_EQ(logits(16, 0), logits(256, 0)) << "the model's";
  EXPECT_EQ(logits(16, 17), logits(256, 0));
  EXPECT_EQ(logits(256, 16), logits(16, 16));
  EXPECT_NE(logits(256, 16), logits(256, 0));
}

INSTANTIATE_TEST_SUITE_P(architectures, golden_model,
                         testing::Values("gpt2", "llama", "llama-tied-llama3", "llama-linear", "mistral", "qwen2",
                                         "qwen3", "qwen3-yarn", "phi3", "smollm3", "gemma3", "granite", "gemma2",
                                         "olmo2", "olmo3", "qwen3-moe", "mixtral", "gpt-oss", "gpt-oss-mxfp4", "olmoe",
                                         "granite-moe", "granite-hybrid", "qwen2-moe", "glm4-moe", "ministral3", "glm",
                                         "glm4", "ernie", "qwen3-vl-moe", "cohere", "cohere2", "qwen3.5", "qwen3.5-moe",
                                         "qwen3-next", "lfm2", "lfm2-moe", "gemma4", "gemma4-small", "gemma4-moe",
                                         "deepseek2", "deepseek3", "glm4-moe-lite", "granite-h", "granite-h-moe",
                                         "nemotron-h", "nemotron-h-moe", "seed-oss", "arcee", "exaone4", "minimax-m2",
                                         "ernie-moe"),
                         [](const auto& info) { return test_name(info.param); });

}  // namespace
}  // namespace troupe
