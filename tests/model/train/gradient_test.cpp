#include <cmath>
#include <random>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "model/ops/isa.hpp"
#include "model/train/lora_parameters.hpp"
#include "model/train/train_pass.hpp"
#include "tests/model/train/reference_model.hpp"
#include "tests/model/train/train_fixture.hpp"

namespace troupe {
namespace {

struct gradient_case {
  const char* model;
  std::optional<scheme> quant;
  precision how;
  double tolerance;
};

class lora_gradients : public testing::TestWithParam<gradient_case> {};

/// A random direction through a parameter: the slope of the loss along it, numerically and by the gradient.
struct direction {
  std::vector<double> step;
  double by_gradient = 0;
};

direction draw(const parameter_set& set, const parameter& p, std::mt19937& random) {
  std::normal_distribution<double> normal;
  direction d;
  const auto gradient = set.compact(p, set.gradients());
  double squares = 0;
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    d.step.push_back(normal(random));
    squares += d.step.back() * d.step.back();
  }
  // half of it along the gradient itself, so that the slope is no small difference of large numbers
  double length = 0;
  for (const float g : gradient) length += static_cast<double>(g) * static_cast<double>(g);
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    d.step[i] = d.step[i] / std::sqrt(squares) + (length > 0 ? gradient[i] / std::sqrt(length) : 0);
    d.by_gradient += d.step[i] * static_cast<double>(gradient[i]);
  }
  return d;
}

double numeric_slope(const reference_model& reference, const training_rows& batch, std::vector<double>& values,
                     const std::vector<double>& step) {
  constexpr double width = 1e-4;
  const std::vector<double> before = values;
  const auto at = [&](double by) {
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = before[i] + by * step[i];
    return reference.loss(batch);
  };
  const double slope = (8 * (at(width) - at(-width)) - (at(2 * width) - at(-2 * width))) / (12 * width);
  values = before;
  return slope;
}

/// Where the reference keeps the rows of our modules in one parameter of PEFT's.
void expect_slopes(reference_model& reference, lora_parameters& lora, const trained_model& model,
                   const training_rows& batch, double tolerance) {
  std::mt19937 random(7);
  for (const parameter& p : lora.parameters().list()) {
    const direction d = draw(lora.parameters(), p, random);
    const auto places = factors_of(reference, model.config, p);
    std::vector<double> joined, step = d.step;
    double slope = 0;
    if (p.name.find("lora_A") != std::string::npos) {
      // shared by all: moved together
      std::vector<double>& first = *places.front();
      const std::vector<double> before = first;
      const auto loss = [&](double by) {
        for (auto* place : places)
          for (std::size_t i = 0; i < before.size(); ++i) (*place)[i] = before[i] + by * step[i];
        return reference.loss(batch);
      };
      constexpr double width = 1e-4;
      slope = (8 * (loss(width) - loss(-width)) - (loss(2 * width) - loss(-2 * width))) / (12 * width);
      loss(0);
    } else {
      std::size_t from = 0;
      for (auto* place : places) {
        const std::vector<double> part(step.begin() + static_cast<std::ptrdiff_t>(from),
                                       step.begin() + static_cast<std::ptrdiff_t>(from + place->size()));
        slope += numeric_slope(reference, batch, *place, part);
        from += place->size();
      }
    }
    EXPECT_NEAR(d.by_gradient, slope, tolerance * std::abs(slope) + 1e-7) << p.name;
  }
}

TEST_P(lora_gradients, follow_central_differences) {
  const gradient_case& c = GetParam();
  thread_pool pool(2);
  const compute with{pool, kernels()};
  const auto base = load_golden(c.model, pool, c.quant);
  trained_model model = frozen(base);
  const auto folder = golden(c.model) / "adapter";
  lora_parameters lora(model, read_lora_options(folder, base->config), 1);
  lora.load(folder, base->config);
  const training_rows batch = some_rows(base->config, {19, 1, 12});
  train_pass pass(model, with, {.most_rows = 64, .most_positions = 32, .how = c.how});
  reference_model reference(*base);
  put_adapter(reference, read_adapter(folder, base->config));
  const pass_result result = pass.train(batch, 1.0f, {});
  const double expected = reference.loss(batch);
  EXPECT_NEAR(result.loss, expected, c.tolerance * expected);
  EXPECT_EQ(result.targets, batch.target_count());
  expect_slopes(reference, lora, model, batch, c.tolerance);
}

std::string name_of_case(const testing::TestParamInfo<gradient_case>& info) {
  std::string name = fmt::format("{}_{}_{}", info.param.model, info.param.quant ? name_of(*info.param.quant) : "native",
                                 static_cast<int>(info.param.how));
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(architectures, lora_gradients,
                         testing::Values(gradient_case{"gpt2", {}, precision::fine, 1e-4},
                                         gradient_case{"llama", {}, precision::fine, 1e-4},
                                         gradient_case{"llama-linear", {}, precision::fine, 1e-4},
                                         gradient_case{"llama-tied-llama3", {}, precision::fine, 1e-4},
                                         gradient_case{"mistral", {}, precision::fine, 1e-4},
                                         gradient_case{"qwen2", {}, precision::fine, 1e-4},
                                         gradient_case{"qwen3", {}, precision::fine, 1e-4}),
                         name_of_case);

INSTANTIATE_TEST_SUITE_P(schemes, lora_gradients,
                         testing::Values(gradient_case{"llama", scheme::u8, precision::exact, 1e-4},
                                         gradient_case{"llama", scheme::u8, precision::fine, 1e-3},
                                         gradient_case{"gpt2", scheme::u8, precision::fine, 1e-3},
                                         gradient_case{"qwen3", scheme::u8g64, precision::fine, 1e-3},
                                         gradient_case{"qwen2", scheme::u8g64, precision::exact, 1e-4},
                                         gradient_case{"qwen3", scheme::q8, precision::exact, 1e-4},
                                         gradient_case{"mistral", scheme::q4, precision::exact, 1e-4},
                                         gradient_case{"qwen2", scheme::bf16, precision::exact, 1e-4}),
                         name_of_case);

}  // namespace
}  // namespace troupe
