// Whole runs whose passes a GPU makes.
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "model/ops/isa.hpp"
#include "model/train/parameters/lora_parameters.hpp"
#include "model/train/run/training_run.hpp"
#include "tests/model/arch/cuda/on_gpu.hpp"
#include "tests/model/train/passes/train_fixture.hpp"

namespace troupe {
namespace {

/// Examples in which every token says what follows.
training_data small_data() {
  training_data data;
  for (int i = 0; i < 12; ++i) {
    training_example& example = data.examples.emplace_back();
    for (int j = 0; j < 4 + i * 7 % 13; ++j) {
      example.tokens.push_back((i * 5 + j * 3) % 90);
      example.learned.push_back(j % 4 != 3);
    }
  }
  return data;
}

training_options options_on(device_id device) {
  training_options options;
  options.row_length = 16, options.batch_rows = 1, options.accumulation = 2, options.rate = 1e-2;
  options.dropout = 0.25, options.validation_share = 0.1, options.device = device;
  return options;
}

/// An adapter with ranks and scales of several kinds, and its run.
struct run_on {
  thread_pool pool{1};
  training_data data = small_data();
  std::shared_ptr<const loaded_model> base = load_golden("qwen3", pool, scheme::f32);
  trained_model model = frozen(base);
  lora_parameters lora;
  training_run run;

  explicit run_on(device_id device)
      : lora(model,
             {.factors = {.rank = 3,
                          .alpha = 6,
                          .rank_stabilized = true,
                          .rank_pattern = {{"q_proj", 5}},
                          .alpha_pattern = {{"layers.1.mlp.up_proj", 3}}}},
             1),
        run(model, lora.parameters(), {pool, kernels()}, data, nullptr, options_on(device)) {}

  std::vector<float> values() const { return {lora.parameters().values().begin(), lora.parameters().values().end()}; }
};

class training_run_on_gpu : public testing::Test {
 protected:
  void SetUp() override { skip_without_gpu(); }
};

TEST_F(training_run_on_gpu, follows_the_processors_losses) {
  run_on there(first_gpu), here({});
  for (int step = 0; step < 2; ++step) {
    const double expected = here.run.step().loss;
    EXPECT_NEAR(there.run.step().loss, expected, 1e-4 * expected);
  }
  const double expected = here.run.validate().loss;
  EXPECT_NEAR(there.run.validate().loss, expected, 1e-4 * expected);
}

TEST_F(training_run_on_gpu, goes_on_from_its_checkpoint_to_the_same_bits_and_from_no_processors) {
  const test::temp_folder folder;
  const auto file = folder.path() / "checkpoint.safetensors";
  run_on whole(first_gpu);
  whole.run.step();
  whole.run.save(file);
  whole.run.step();
  run_on again(first_gpu);
  again.run.load(file);
  again.run.step();
  EXPECT_EQ(again.values(), whole.values());
  run_on here({});
  EXPECT_THROW(here.run.load(file), input_error);
}

}  // namespace
}  // namespace troupe
