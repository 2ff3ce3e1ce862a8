#include <algorithm>
#include <cmath>
#include <random>

#include <gtest/gtest.h>

#include "model/ops/isa.hpp"
#include "model/train/master_weights.hpp"
#include "model/train/train_pass.hpp"
#include "tests/model/train/train_fixture.hpp"

namespace troupe {
namespace {

class full_gradients : public testing::TestWithParam<const char*> {};

/// The loss along a direction that is half the gradient and half drawn, four points around now.
double slope(const reference_model& reference, const training_rows& batch, std::vector<double>& values,
             const std::vector<double>& step) {
  constexpr double width = 1e-4;
  const std::vector<double> before = values;
  const auto at = [&](double by) {
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = before[i] + by * step[i];
    return reference.loss(batch);
  };
  const double found = (8 * (at(width) - at(-width)) - (at(2 * width) - at(-2 * width))) / (12 * width);
  values = before;
  return found;
}

TEST_P(full_gradients, follow_central_differences_for_every_weight) {
  thread_pool pool(2);
  const compute with{pool, kernels()};
  const auto base = load_golden(GetParam(), pool, scheme::f32);
  master_weights weights(golden(GetParam()));
  const training_rows batch = some_rows(base->config, {17, 1, 9});
  train_pass pass(weights.model(), with, {.most_rows = 64, .most_positions = 32, .keep_activations = false});
  const pass_result result = pass.train(batch, 1.0f, {});
  reference_model reference(*base);
  const double expected = reference.loss(batch);
  EXPECT_NEAR(result.loss, expected, 1e-5 * expected);
  std::mt19937 random(5);
  std::normal_distribution<double> normal;
  for (const parameter& p : weights.parameters().list()) {
    const auto gradient = weights.parameters().compact(p, weights.parameters().gradients());
    double length = 0;
    for (const float g : gradient) length += static_cast<double>(g) * static_cast<double>(g);
    ASSERT_TRUE(length > 0 || p.name.find("k_proj.bias") != std::string::npos) << p.name;
    std::vector<double> step;
    double by_gradient = 0;
    for (const float g : gradient) {
      const double drawn = normal(random) / std::sqrt(static_cast<double>(gradient.size()));
      step.push_back(drawn + (length > 0 ? static_cast<double>(g) / std::sqrt(length) : 0));
      by_gradient += step.back() * static_cast<double>(g);
    }
    const double found = slope(reference, batch, reference.weights.at(p.name), step);
    EXPECT_NEAR(by_gradient, found, 1e-4 * std::abs(found) + 1e-5) << p.name;
  }
}

INSTANTIATE_TEST_SUITE_P(architectures, full_gradients,
                         testing::Values("gpt2", "llama", "llama-linear", "llama-tied-llama3", "mistral", "qwen2",
                                         "qwen3"),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST(master_weights, written_folders_load_with_the_same_values) {
  thread_pool pool(1);
  for (const char* name : {"gpt2", "qwen2", "llama-tied-llama3"}) {
    const scratch_folder folder;
    const master_weights before(golden(name));
    std::string config;
    {
      std::FILE* file = std::fopen((golden(name) / "config.json").c_str(), "rb");
      ASSERT_NE(file, nullptr);
      for (int c; (c = std::fgetc(file)) != EOF;) config.push_back(static_cast<char>(c));
      std::fclose(file);
    }
    before.save(folder.path, config);
    const master_weights after(folder.path);
    ASSERT_EQ(before.parameters().values().size(), after.parameters().values().size());
    EXPECT_TRUE(std::equal(before.parameters().values().begin(), before.parameters().values().end(),
                           after.parameters().values().begin()))
        << name;
  }
}

}  // namespace
}  // namespace troupe
