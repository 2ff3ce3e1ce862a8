#include "tests/model/arch/same_tokens.hpp"

#include "tests/model/arch/cuda/on_gpu.hpp"

namespace troupe {
namespace {

constexpr int length = 30;

TEST_P(same_tokens, whatever_the_chunking) {
  expect_the_same_in_chunks_of({1, 7});
}

TEST_P(same_tokens, whoever_else_is_in_the_pass) {
  expect_the_same_in_company();
}

TEST_P(same_tokens, however_the_layers_are_split) {
  expect_the_same_from_two_shards();
}

TEST_P(same_tokens, whichever_threads_come_first) {
  for (const unsigned order : {1u, 2u}) {
    set_thread_order(order);
    EXPECT_TRUE(same_bits(logits_of(model_, tokens_, plain_), expected_)) << "order " << order;
  }
  set_thread_order(0);
}

INSTANTIATE_TEST_SUITE_P(on_a_gpu, same_tokens,
                         testing::Values(same_tokens_case{"llama", scheme::f32, kv_kind::f32, first_gpu, length},
                                         same_tokens_case{"llama", scheme::bf16, kv_kind::f16, first_gpu, length},
                                         same_tokens_case{"gpt2", scheme::u8g64, kv_kind::f16, first_gpu, length},
                                         same_tokens_case{"llama", scheme::q4, kv_kind::f16, first_gpu, length},
                                         same_tokens_case{"qwen3", scheme::u4g32, kv_kind::f16, first_gpu, length},
                                         same_tokens_case{"phi3", scheme::q8, kv_kind::f16, first_gpu, length},
                                         same_tokens_case{"smollm3", scheme::bf16, kv_kind::f16, first_gpu, length},
                                         same_tokens_case{"gemma3", scheme::u8, kv_kind::f16, first_gpu, length},
                                         same_tokens_case{"granite", scheme::u8, kv_kind::f16, first_gpu, length},
                                         same_tokens_case{"gemma2", scheme::bf16, kv_kind::f16, first_gpu, length},
                                         same_tokens_case{"gemma2", scheme::u8, kv_kind::i8, first_gpu, length},
                                         same_tokens_case{"olmo2", scheme::u8, kv_kind::f16, first_gpu, length},
                                         same_tokens_case{"olmo3", scheme::bf16, kv_kind::f16, first_gpu, length},
                                         same_tokens_case{"qwen3-moe", scheme::u8, kv_kind::f16, first_gpu, length},
                                         same_tokens_case{"mixtral", scheme::bf16, kv_kind::f16, first_gpu, length},
                                         same_tokens_case{"mixtral", scheme::q4, kv_kind::f16, first_gpu, length},
                                         same_tokens_case{"llama", scheme::mxfp4, kv_kind::f16, first_gpu, length},
                                         same_tokens_case{"qwen3-moe", scheme::f32, kv_kind::f16, first_gpu, length},
                                         same_tokens_case{"qwen2", scheme::u8, kv_kind::i8, first_gpu, length}),
                         [](const auto& info) { return name_of(info); });

}  // namespace
}  // namespace troupe
