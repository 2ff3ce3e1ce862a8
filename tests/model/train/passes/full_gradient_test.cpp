#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "model/ops/isa.hpp"
#include "model/train/parameters/master_weights.hpp"
#include "model/train/passes/cpu_train_pass.hpp"
#include "tests/model/train/passes/train_fixture.hpp"

namespace troupe {
namespace {

class full_gradients : public testing::TestWithParam<const char*> {};

TEST_P(full_gradients, follow_central_differences_for_every_weight) {
  thread_pool pool(2);
  const compute with{pool, kernels()};
  const auto base = load_golden(GetParam(), pool, scheme::f32);
  master_weights weights(golden(GetParam()));
  const training_rows batch = some_rows(base->config, {17, 1, 9});
  cpu_train_pass pass(weights.model(), with, {.most_rows = 64, .most_positions = 32, .keep_activations = false});
  const pass_result result = pass.train(batch, 1.0f, {});
  reference_model reference(*base);
  const double expected = reference.loss(batch);
  EXPECT_NEAR(result.loss, expected, 1e-5 * expected);
  unsigned seed = 1;
  for (const parameter& p : weights.parameters().list()) {
    const direction d = draw_direction(weights.parameters().compact(p, weights.parameters().gradients()), seed++);
    std::vector<double>& values = reference.weights.at(p.name);
    const std::vector<double> before = values;
    const double slope = central_slope([&](double by) {
      for (std::size_t i = 0; i < values.size(); ++i) values[i] = before[i] + by * d.step[i];
      return reference.loss(batch);
    });
    values = before;
    EXPECT_NEAR(d.slope, slope, 1e-4 * std::abs(slope) + 1e-5) << p.name;
  }
}

INSTANTIATE_TEST_SUITE_P(architectures, full_gradients,
                         testing::Values("gpt2", "llama", "llama-linear", "llama-tied-llama3", "mistral", "qwen2",
                                         "qwen3", "qwen3-yarn", "phi3", "smollm3", "gemma3", "granite", "gemma2",
                                         "olmo2", "olmo3", "glm4", "ernie", "cohere", "cohere2", "seed-oss", "arcee",
                                         "exaone4"),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace troupe
