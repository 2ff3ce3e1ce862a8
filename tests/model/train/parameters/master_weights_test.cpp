#include "model/train/parameters/master_weights.hpp"

#include <algorithm>

#include <gmock/gmock.h>

#include "model/formats/hf/hf_config.hpp"
#include "tests/base/places.hpp"
#include "tests/base/refusal.hpp"
#include "tests/base/temp_folder.hpp"

namespace troupe {
namespace {

TEST(master_weights, are_not_made_of_a_model_that_another_program_quantized) {
  const test::temp_folder folder;
  const auto model = folder.path() / "model";
  std::filesystem::copy(test::golden / "llama", model);
  EXPECT_EQ(test::refusal([&] { (void)master_weights(model); }), "");
  std::string config = test::read_file(model / "config.json");
  config.insert(config.find('{') + 1, R"("quantization_config": {"quant_method": "awq"},)");
  folder.write("model/config.json", config);
  EXPECT_THAT(test::refusal([&] { (void)master_weights(model); }),
              testing::HasSubstr("is quantized: train the original model"));
}

TEST(master_weights, of_models_that_keep_states_cannot_be_trained) {
  EXPECT_EQ(test::refusal([] { master_weights(read_hf_config(test::golden / "qwen3.5"), 1); }),
            "the model has layers that keep states, or gates of attention, of which all weights cannot be trained "
            "so far: train an adapter");
}

TEST(master_weights, written_folders_load_with_the_same_values) {
  for (const char* name :
       {"gpt2", "qwen2", "llama-tied-llama3", "phi3", "smollm3", "gemma3", "granite", "gemma2", "olmo2", "olmo3", "glm",
        "glm4", "ernie", "cohere", "cohere2", "seed-oss", "arcee", "exaone4"}) {
    const test::temp_folder folder;
    const master_weights before(test::golden / name);
    before.save(folder.path(), test::read_file(test::golden / name / "config.json"));
    const master_weights after(folder.path());
    EXPECT_TRUE(std::ranges::equal(before.parameters().values(), after.parameters().values())) << name;
  }
}

}  // namespace
}  // namespace troupe
