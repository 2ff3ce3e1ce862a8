// Models whose layers read what others made of the rows, or what belongs to the rows' tokens.
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "model/arch/decoder.hpp"
#include "model/arch/gpu.hpp"
#include "model/arch/kv_storage.hpp"
#include "tests/model/arch/golden.hpp"
#include "tests/model/arch/models.hpp"

namespace troupe {
namespace {

TEST(models_of_one_stage, are_not_cut) {
  const auto model = load_for_test(golden / "gemma4-small", scheme::u8);
  ASSERT_TRUE(model->config.is_one_stage());
  thread_pool pool(1);
  EXPECT_NE(make_decoder(model, {.layers = 2, .blocks = 1}, {pool, kernels()}), nullptr) << "to measure speed";
  EXPECT_THROW(make_decoder(model, {.first_layer = 2, .blocks = 1}, {pool, kernels()}), input_error);
}

TEST(models_of_one_stage, keep_keys_and_values_of_layers_that_share_none) {
  const model_config config = load_for_test(golden / "gemma4-small", scheme::u8)->config;
  const std::int64_t narrow = kv_storage::bytes_per_block(config, 0, kv_kind::f16);
  const std::int64_t wide = kv_storage::bytes_per_block(config, 1, kv_kind::f16);
  EXPECT_EQ(wide, 2 * narrow);
  EXPECT_EQ(kv_storage::bytes_per_block(config, 2, kv_kind::f16), 0);
  EXPECT_EQ(kv_storage::bytes_per_block(config, kv_kind::f16), narrow + wide);
  const kv_storage all(config, {}, 0, config.layers, 3, kv_kind::f16);
  EXPECT_EQ(all.layer(2).first, all.layer(0).first) << "the last one with a window";
  EXPECT_EQ(all.layer(3).first, all.layer(1).first);
  EXPECT_EQ(all.layer(3).block_bytes, wide);
}

TEST(models_of_one_stage, and_those_with_two_kinds_of_heads_run_on_processors_alone) {
  for (const char* name : {"gemma4", "gemma4-small", "gemma4-moe", "deepseek2"}) {
    const auto model = load_for_test(golden / name, scheme::u8);
    EXPECT_NE(gpus_lack(*model).find("by processors alone"), std::string_view::npos) << name;
    EXPECT_FALSE(gpus_lack_for_training(model->config).empty()) << name;
    EXPECT_THROW(check({.rank = 0, .ranks = 2, .gather = [](auto, auto, int) {}}, model->config), input_error) << name;
  }
}

}  // namespace
}  // namespace troupe
