#include "tests/model/arch/same_tokens.hpp"

namespace troupe {
namespace {

TEST_P(same_tokens, whatever_the_chunking) {
  expect_the_same_in_chunks_of({1, 7, 64});
}

TEST_P(same_tokens, whatever_the_number_of_threads) {
  for (const int threads : {1, 3, 4}) {
    run_options options = plain_;
    options.threads = threads;
    EXPECT_TRUE(same_bits(logits_of(model_, tokens_, options), expected_)) << threads << " threads";
  }
}

TEST_P(same_tokens, whatever_the_instruction_set) {
  for (const kernel_table* table : available_kernels()) {
    run_options options = plain_;
    options.table = table;
    EXPECT_TRUE(same_bits(logits_of(model_, tokens_, options), expected_)) << table->isa;
  }
}

TEST_P(same_tokens, whoever_else_is_in_the_pass) {
  expect_the_same_in_company();
}

TEST_P(same_tokens, however_the_layers_are_split) {
  if (model_->config.is_one_stage()) return;  // which are never cut
  expect_the_same_from_two_shards();
}

INSTANTIATE_TEST_SUITE_P(
    schemes, same_tokens,
    testing::Values(
        same_tokens_case{"llama", scheme::f32, kv_kind::f32}, same_tokens_case{"llama", scheme::bf16, kv_kind::f16},
        same_tokens_case{"llama", scheme::u8, kv_kind::f16}, same_tokens_case{"gpt2", scheme::u8g64, kv_kind::f16},
        same_tokens_case{"qwen3", scheme::q8, kv_kind::f16}, same_tokens_case{"llama", scheme::q4, kv_kind::f16},
        same_tokens_case{"qwen3", scheme::u4g32, kv_kind::f16}, same_tokens_case{"llama", scheme::mxfp4, kv_kind::f16},
        same_tokens_case{"mistral", scheme::u8, kv_kind::f32}, same_tokens_case{"qwen2", scheme::u8, kv_kind::i8},
        same_tokens_case{"gpt2", scheme::q8, kv_kind::i8}, same_tokens_case{"phi3", scheme::u8, kv_kind::i8},
        same_tokens_case{"smollm3", scheme::bf16, kv_kind::f16}, same_tokens_case{"gemma3", scheme::u8, kv_kind::f16},
        same_tokens_case{"gemma3", scheme::f32, kv_kind::i8}, same_tokens_case{"granite", scheme::u8, kv_kind::f16},
        same_tokens_case{"gemma2", scheme::u8, kv_kind::f16}, same_tokens_case{"gemma2", scheme::f32, kv_kind::i8},
        same_tokens_case{"gemma2", scheme::bf16, kv_kind::f32}, same_tokens_case{"olmo2", scheme::u8, kv_kind::i8},
        same_tokens_case{"olmo3", scheme::bf16, kv_kind::f16}, same_tokens_case{"qwen3-moe", scheme::u8, kv_kind::f16},
        same_tokens_case{"qwen3-moe", scheme::bf16, kv_kind::i8}, same_tokens_case{"mixtral", scheme::q4, kv_kind::f16},
        same_tokens_case{"mixtral", scheme::mxfp4, kv_kind::f16},
        same_tokens_case{"mixtral", scheme::f32, kv_kind::f32}, same_tokens_case{"gpt-oss", scheme::u8, kv_kind::f16},
        same_tokens_case{"gpt-oss", scheme::f32, kv_kind::i8},
        same_tokens_case{"gpt-oss-mxfp4", scheme::mxfp4, kv_kind::f16},
        same_tokens_case{"olmoe", scheme::q8, kv_kind::f16},
        same_tokens_case{"granite-moe", scheme::bf16, kv_kind::f16},
        same_tokens_case{"qwen2-moe", scheme::u8, kv_kind::f16},
        same_tokens_case{"qwen2-moe", scheme::f32, kv_kind::i8}, same_tokens_case{"glm4-moe", scheme::u8, kv_kind::f16},
        same_tokens_case{"glm4-moe", scheme::bf16, kv_kind::i8},
        same_tokens_case{"ministral3", scheme::u8, kv_kind::f16}, same_tokens_case{"glm", scheme::bf16, kv_kind::f16},
        same_tokens_case{"glm4", scheme::u8, kv_kind::i8}, same_tokens_case{"ernie", scheme::q4, kv_kind::f16},
        same_tokens_case{"cohere", scheme::u8, kv_kind::f16}, same_tokens_case{"cohere2", scheme::bf16, kv_kind::i8},
        same_tokens_case{"qwen3.5", scheme::u8, kv_kind::f16}, same_tokens_case{"qwen3.5", scheme::f32, kv_kind::f32},
        same_tokens_case{"qwen3.5-moe", scheme::bf16, kv_kind::i8},
        same_tokens_case{"qwen3-next", scheme::q4, kv_kind::f16}, same_tokens_case{"lfm2", scheme::u8, kv_kind::f16},
        same_tokens_case{"lfm2", scheme::f32, kv_kind::f32}, same_tokens_case{"lfm2-moe", scheme::q8, kv_kind::i8},
        same_tokens_case{"gemma4", scheme::u8, kv_kind::f16}, same_tokens_case{"gemma4", scheme::bf16, kv_kind::i8},
        same_tokens_case{"gemma4-small", scheme::u8, kv_kind::i8},
        same_tokens_case{"gemma4-small", scheme::f32, kv_kind::f32},
        same_tokens_case{"gemma4-moe", scheme::q4, kv_kind::f16},
        same_tokens_case{"deepseek2", scheme::u8, kv_kind::f16},
        same_tokens_case{"deepseek2", scheme::f32, kv_kind::i8},
        same_tokens_case{"deepseek3", scheme::q4, kv_kind::f16},
        same_tokens_case{"glm4-moe-lite", scheme::bf16, kv_kind::f32},
        same_tokens_case{"granite-h", scheme::u8, kv_kind::f16},
        same_tokens_case{"granite-h", scheme::f32, kv_kind::f32},
        same_tokens_case{"granite-h-moe", scheme::q4, kv_kind::i8},
        same_tokens_case{"nemotron-h", scheme::u8, kv_kind::f16},
        same_tokens_case{"nemotron-h-moe", scheme::q4, kv_kind::f16},
        same_tokens_case{"seed-oss", scheme::u8, kv_kind::f16}, same_tokens_case{"arcee", scheme::q4, kv_kind::f16},
        same_tokens_case{"exaone4", scheme::u8, kv_kind::i8}, same_tokens_case{"minimax-m2", scheme::u8, kv_kind::f16},
        same_tokens_case{"ernie-moe", scheme::bf16, kv_kind::f16}),
    [](const auto& info) { return name_of(info); });

}  // namespace
}  // namespace troupe
