#include "model/train/master_weights.hpp"

#include <gmock/gmock.h>

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

}  // namespace
}  // namespace troupe
