// A small trained model on a GPU: the reference's greedy tokens.
#include "tests/base/places.hpp"
#include "tests/model/arch/cuda/on_gpu.hpp"
#include "tests/model/arch/models.hpp"

namespace troupe {
namespace {

class stories_on_gpu : public testing::TestWithParam<scheme> {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(path_ / "model.safetensors")) GTEST_SKIP() << "stories260k is not here: " << path_;
    skip_without_gpu();
  }

  std::filesystem::path path_ = test::shared_data / "models" / "stories260k";
};

TEST_P(stories_on_gpu, tells_what_the_processor_tells) {
  const auto model = load_for_test(path_, GetParam());
  run_options options{.kv = default_kv(*model)};
  const auto expected = greedy_tokens(model, {model->config.bos_token}, 12, options);
  options.device = first_gpu;
  EXPECT_EQ(greedy_tokens(model, {model->config.bos_token}, 12, options), expected);
}

INSTANTIATE_TEST_SUITE_P(schemes, stories_on_gpu, testing::Values(scheme::f32, scheme::bf16, scheme::u8, scheme::q4),
                         [](const auto& info) { return std::string(name_of(info.param)); });

}  // namespace
}  // namespace troupe
