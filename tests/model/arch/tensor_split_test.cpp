// Promise 1 over ranks: what several decoders with parts of every matrix make together is what one makes, bit for bit.
#include "base/error.hpp"
#include "tests/base/places.hpp"
#include "tests/model/arch/split_ranks.hpp"

namespace troupe {
namespace {

class tensor_splits : public testing::TestWithParam<split_case> {};

TEST_P(tensor_splits, give_what_the_whole_gives) {
  const auto model = random_model(GetParam().model, GetParam().quant);
  const auto adapter = bench::random_adapter(*model, 5, 2);
  const split_traffic all(model->config.vocab_size, adapter.get(), 40);
  const decoder::options chosen{.kv = GetParam().kv};
  const split_results expected = results_of(model, all, chosen);
  for (int size = 2; size <= 4; ++size) expect_the_same_of_ranks(size, model, all, chosen, expected);
}

INSTANTIATE_TEST_SUITE_P(
    schemes, tensor_splits,
    testing::Values(split_case{"llama", scheme::f32, kv_kind::f32}, split_case{"llama", scheme::bf16, kv_kind::f16},
                    split_case{"llama", scheme::u8, kv_kind::f16}, split_case{"llama", scheme::q4, kv_kind::f16},
                    split_case{"gpt2", scheme::u8, kv_kind::f16}, split_case{"gpt2", scheme::f32, kv_kind::f16},
                    split_case{"gpt2", scheme::q8, kv_kind::i8}, split_case{"gpt2", scheme::q4, kv_kind::f16},
                    split_case{"qwen2", scheme::u8, kv_kind::i8}, split_case{"qwen2", scheme::f32, kv_kind::f32},
                    split_case{"qwen3", scheme::q8, kv_kind::f16}, split_case{"qwen3", scheme::u8g64, kv_kind::f16},
                    split_case{"llama", scheme::u4g32, kv_kind::f16}, split_case{"llama", scheme::mxfp4, kv_kind::f16},
                    split_case{"phi3", scheme::u8, kv_kind::f16}, split_case{"gemma3", scheme::u8, kv_kind::f16},
                    split_case{"gemma3", scheme::f32, kv_kind::i8}, split_case{"granite", scheme::u8, kv_kind::f16},
                    split_case{"gemma2", scheme::u8, kv_kind::f16}, split_case{"olmo2", scheme::u8, kv_kind::f16},
                    split_case{"olmo2", scheme::f32, kv_kind::f32}, split_case{"cohere2", scheme::u8, kv_kind::f16},
                    split_case{"cohere2", scheme::f32, kv_kind::f32}),
    [](const auto& info) { return name_of(info); });

TEST(tensor_split, columns_are_shared_out_whole_and_evenly) {
  for (int ranks = 1; ranks <= 5; ++ranks)
    for (std::int64_t units = 0; units < 12; ++units) {
      std::int64_t at = 0;
      for (int rank = 0; rank < ranks; ++rank) {
        const column_cut cut = cut_columns({rank, ranks, {}}, units, 16);
        EXPECT_EQ(cut.first, at);
        EXPECT_EQ(cut.count() % 16, 0);
        EXPECT_LE(cut.count() / 16, units / ranks + 1);
        EXPECT_GE(cut.count() / 16, units / ranks);
        at = cut.last;
      }
      EXPECT_EQ(at, units * 16);
    }
}

TEST(tensor_split, more_ranks_than_heads_are_refused) {
  model_config config;
  config.kv_heads = 2;
  const auto nothing = [](std::span<float>, std::span<const std::size_t>, int) {};
  EXPECT_NO_THROW(check(tensor_split{1, 2, nothing}, config));
  EXPECT_THROW(check(tensor_split{1, 3, nothing}, config), input_error);
  EXPECT_THROW(check(tensor_split{2, 2, nothing}, config), input_error);
  EXPECT_THROW(check(tensor_split{1, 2, {}}, config), input_error);
  model_config keeping = config;
  keeping.layers = 1, keeping.mixers = {mixer_kind::delta};
  EXPECT_NO_THROW(check(tensor_split{}, keeping));
  EXPECT_THROW(check(tensor_split{1, 2, nothing}, keeping), input_error);
  config.experts.count = 4;
  EXPECT_NO_THROW(check(tensor_split{}, config));
  EXPECT_THROW(check(tensor_split{1, 2, nothing}, config), input_error);
}

TEST(tensor_split, decoders_of_ranks_that_cannot_share_the_model_are_refused) {
  thread_pool pool(1);
  const auto nothing = [](std::span<float>, std::span<const std::size_t>, int) {};
  const auto make = [&](const char* name, int ranks) {
    make_decoder(load_for_test(test::golden / name, scheme::u8), {.blocks = 1, .split = {1, ranks, nothing}},
                 {pool, kernels()});
  };
  EXPECT_NO_THROW(make("llama", 2));
  EXPECT_THROW(make("llama", 3), input_error);
  EXPECT_THROW(make("qwen3.5", 2), input_error);
}

TEST(tensor_split, says_of_a_model_why_ranks_cannot_share_it) {
  const model_config common;
  EXPECT_EQ(ranks_lack(common), "");
  const auto expect_named = [](const model_config& config, std::string_view what) {
    EXPECT_NE(ranks_lack(config).find(what), std::string_view::npos) << what;
    const auto nothing = [](std::span<float>, std::span<const std::size_t>, int) {};
    EXPECT_NO_THROW(check(tensor_split{}, config)) << what;
    EXPECT_THROW(check(tensor_split{1, 2, nothing}, config), input_error) << what;
  };
  model_config mixture = common, gated = common, latent = common, wide = common, sharing = common;
  mixture.experts.count = 4, gated.attention_gate = true, latent.latent.rank = 16, wide.wide.dim = 32;
  sharing.sharing_layers = 1;
  for (model_config* each : {&mixture, &gated, &latent, &wide, &sharing}) each->kv_heads = 2;
  expect_named(mixture, "is a mixture of experts");
  expect_named(gated, "gates of attention");
  expect_named(latent, "latent attention");
  expect_named(wide, "heads differ");
  expect_named(sharing, "share keys and values");
}

}  // namespace
}  // namespace troupe
