// Promise 1 over ranks on GPUs. All of them compute on the first one: what is tested is what they make, not where.
#include "tests/model/arch/cuda/on_gpu.hpp"
#include "tests/model/arch/split_ranks.hpp"

namespace troupe {
namespace {

constexpr int tokens_each = 12;

void expect_ranks_to_make_what_one_does(const std::shared_ptr<const loaded_model>& model,
                                        const decoder::options& chosen) {
  const auto adapter = bench::random_adapter(*model, 5, 2);
  const split_traffic all(model->config.vocab_size, adapter.get(), tokens_each);
  const split_results expected = results_of(model, all, chosen);
  for (int size = 2; size <= 3; ++size) expect_the_same_of_ranks(size, model, all, chosen, expected);
}

class tensor_splits_on_a_gpu : public testing::TestWithParam<split_case> {
 protected:
  void SetUp() override { skip_without_gpu(); }
};

TEST_P(tensor_splits_on_a_gpu, give_what_the_whole_gives) {
  expect_ranks_to_make_what_one_does(random_model(GetParam().model, GetParam().quant),
                                     {.kv = GetParam().kv, .device = first_gpu});
}

INSTANTIATE_TEST_SUITE_P(
    schemes, tensor_splits_on_a_gpu,
    testing::Values(split_case{"llama", scheme::f32, kv_kind::f32}, split_case{"llama", scheme::bf16, kv_kind::f16},
                    split_case{"qwen2", scheme::u8, kv_kind::i8}, split_case{"gpt2", scheme::q4, kv_kind::f16},
                    split_case{"qwen3", scheme::q8, kv_kind::f16}, split_case{"qwen3", scheme::u8g64, kv_kind::f16},
                    split_case{"phi3", scheme::u8, kv_kind::f16}, split_case{"gemma3", scheme::bf16, kv_kind::f16},
                    split_case{"granite", scheme::u8, kv_kind::f16}, split_case{"gemma2", scheme::bf16, kv_kind::f16},
                    split_case{"olmo2", scheme::u8, kv_kind::f16}, split_case{"llama", scheme::u4g32, kv_kind::f16}),
    [](const auto& info) { return name_of(info); });

TEST(tensor_split_on_a_gpu, cuts_a_head_that_is_the_table_of_embeddings) {
  skip_without_gpu();
  if (testing::Test::IsSkipped()) return;
  expect_ranks_to_make_what_one_does(random_model("qwen2", scheme::u8, true), {.device = first_gpu});
}

TEST(tensor_split_on_a_gpu, goes_on_in_the_next_stage) {
  skip_without_gpu();
  if (testing::Test::IsSkipped()) return;
  expect_ranks_to_make_what_one_does(random_model("llama", scheme::q4), {.layers = 1, .device = first_gpu});
}

#if __has_include(<cuda_host/fibers.hpp>)
/// Threads can exchange what lies on a simulated device, as NCCL does on GPUs.
TEST(tensor_split_on_a_gpu, exchanges_without_the_host) {
  const cuda_host::device_at_work threads_may_touch_its_memory;
  decoder::options chosen{.device = first_gpu};
  chosen.split.on_device = true;
  expect_ranks_to_make_what_one_does(random_model("qwen3", scheme::q4), chosen);
}
#endif

}  // namespace
}  // namespace troupe
