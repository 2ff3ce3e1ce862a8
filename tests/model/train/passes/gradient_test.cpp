#include <algorithm>
#include <cmath>
#include <fstream>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "model/ops/isa.hpp"
#include "model/train/parameters/lora_parameters.hpp"
#include "model/train/passes/cpu_train_pass.hpp"
#include "tests/model/train/passes/reference_model.hpp"
#include "tests/model/train/passes/train_fixture.hpp"

namespace troupe {
namespace {

struct gradient_case {
  const char* model;
  std::optional<scheme> quant;
  train_precision precision;
  double tolerance;
  std::vector<std::int64_t> lengths = {19, 1, 12};
  unsigned seed = 3;  ///< of the rows: of a mixture such as choose no other experts within a difference's width
};

class lora_gradients : public testing::TestWithParam<gradient_case> {};

/// Moves a parameter of PEFT's form in the reference: its parts may belong to several of our modules, which share A and
/// have rows of B each.
void move(const std::vector<std::vector<double>*>& parts, const std::vector<std::vector<double>>& before,
          const std::vector<double>& step, double by, bool shared) {
  std::size_t at = 0;
  for (std::size_t p = 0; p < parts.size(); ++p) {
    if (shared) at = 0;
    for (std::size_t i = 0; i < parts[p]->size(); ++i) (*parts[p])[i] = before[p][i] + by * step[at++];
  }
}

void expect_slopes(reference_model& reference, const lora_parameters& lora, const model_config& config,
                   const training_rows& batch, double tolerance) {
  const parameter_set& set = lora.parameters();
  unsigned seed = 1;
  for (const parameter& p : set.list()) {
    const direction d = draw_direction(set.compact(p, set.gradients()), seed++);
    const auto parts = factors_of(reference, config, p);
    std::vector<std::vector<double>> before;
    for (const auto* part : parts) before.push_back(*part);
    const bool shared = p.name.find("lora_A") != std::string::npos;
    const double slope = central_slope([&](double by) {
      move(parts, before, d.step, by, shared);
      return reference.loss(batch);
    });
    move(parts, before, d.step, 0, shared);
    EXPECT_NEAR(d.slope, slope, tolerance * std::abs(slope) + 1e-7) << p.name;
  }
}

/// With the adapter that lies beside a golden model.
void expect_gradients(const std::shared_ptr<const loaded_model>& base, const std::filesystem::path& folder,
                      const compute& with, const gradient_case& c) {
  trained_model model = frozen(base);
  lora_parameters lora(model, read_lora_options(folder, base->config), 1);
  lora.load(folder, base->config);
  const training_rows batch = some_rows(base->config, c.lengths, c.seed);
  cpu_train_pass pass(model, with, {.most_rows = 96, .most_positions = 96, .precision = c.precision});
  reference_model reference(*base);
  put_adapter(reference, read_adapter(folder, base->config));
  const pass_result result = pass.train(batch, 1.0f, {});
  const double expected = reference.loss(batch);
  EXPECT_NEAR(result.loss, expected, c.tolerance * expected);
  EXPECT_EQ(result.targets, batch.target_count());
  expect_slopes(reference, lora, base->config, batch, c.tolerance);
}

TEST_P(lora_gradients, follow_central_differences) {
  const gradient_case& c = GetParam();
  thread_pool pool(2);
  expect_gradients(load_golden(c.model, pool, c.quant), golden(c.model) / "adapter", {pool, kernels()}, c);
}

TEST(lora_gradients_of_linear_attention, go_back_from_one_run_of_kept_rows_to_another) {
  thread_pool pool(2);
  gradient_case c{"qwen3.5", {}, train_precision::exact, 2e-4};
  c.lengths = {40};
  expect_gradients(load_golden(c.model, pool), golden(c.model) / "adapter", {pool, kernels()}, c);
}

/// The golden model, with one thing in its configuration as another text has it.
std::shared_ptr<const loaded_model> load_changed(const char* name, const std::string& from, const std::string& to,
                                                 thread_pool& pool) {
  const test::temp_folder folder;
  std::filesystem::copy(golden(name), folder.path());
  std::string config = test::read_file(folder.path() / "config.json");
  EXPECT_NE(config.find(from), std::string::npos);
  config.replace(config.find(from), from.size(), to);
  std::ofstream(folder.path() / "config.json") << config;
  return load_model(folder.path(), {.quant = {}, .keep = {}, .cache = folder.path() / "cache", .progress = {}}, pool);
}

/// Where an activation is held to its limit there is no central difference.
TEST(lora_gradients_of_gpt_oss, follow_central_differences_within_the_limit_of_activations) {
  thread_pool pool(2);
  for (const char* model : {"gpt-oss", "gpt-oss-mxfp4"})
    expect_gradients(load_changed(model, "\"swiglu_limit\": 1.25", "\"swiglu_limit\": 100", pool),
                     golden(model) / "adapter", {pool, kernels()}, {model, {}, train_precision::exact, 1e-4});
}

TEST(lora_gradients_of_a_mixture, follow_central_differences_where_shares_are_of_all_experts) {
  thread_pool pool(2);
  const auto base = load_changed("qwen3-moe", "\"norm_topk_prob\": true", "\"norm_topk_prob\": false", pool);
  ASSERT_FALSE(base->config.experts.whole_shares);
  expect_gradients(base, golden("qwen3-moe") / "adapter", {pool, kernels()},
                   {"qwen3-moe", {}, train_precision::fine, 1e-4});
}

/// GGUF files may have none.
TEST(lora_gradients_of_gemma4, need_no_factors_of_layers) {
  thread_pool pool(2);
  const auto base = load_golden("gemma4-moe", pool);
  trained_model model = frozen(base);
  model.config.layer_factors = false;
  for (trained_layer& layer : model.layers) layer.factor = nullptr;
  lora_parameters lora(model, read_lora_options(golden("gemma4-moe") / "adapter", base->config), 1);
  cpu_train_pass pass(model, {pool, kernels()}, {.most_rows = 32, .most_positions = 32});
  const pass_result result = pass.train(some_rows(base->config, {24}), 1.0f, {});
  EXPECT_TRUE(std::isfinite(result.loss) && result.loss > 0);
}

std::string name_of_case(const testing::TestParamInfo<gradient_case>& info) {
  std::string name = fmt::format("{}_{}_{}", info.param.model, info.param.quant ? name_of(*info.param.quant) : "native",
                                 static_cast<int>(info.param.precision));
  for (char& each : name)
    if (each == '-' || each == '.') each = '_';
  return name;
}

INSTANTIATE_TEST_SUITE_P(architectures, lora_gradients,
                         testing::Values(gradient_case{"gpt2", {}, train_precision::fine, 1e-4},
                                         gradient_case{"llama", {}, train_precision::fine, 1e-4},
                                         gradient_case{"llama-linear", {}, train_precision::fine, 1e-4},
                                         gradient_case{"llama-tied-llama3", {}, train_precision::fine, 1e-4},
                                         gradient_case{"mistral", {}, train_precision::fine, 1e-4},
                                         gradient_case{"qwen2", {}, train_precision::fine, 1e-4},
                                         gradient_case{"qwen3", {}, train_precision::fine, 1e-4},
                                         gradient_case{"qwen3-yarn", {}, train_precision::fine, 1e-4},
                                         gradient_case{"phi3", {}, train_precision::fine, 1e-4},
                                         gradient_case{"smollm3", {}, train_precision::fine, 1e-4},
                                         gradient_case{"gemma3", {}, train_precision::fine, 1e-4},
                                         gradient_case{"granite", {}, train_precision::fine, 1e-4},
                                         gradient_case{"gemma2", {}, train_precision::fine, 1e-4},
                                         gradient_case{"olmo2", {}, train_precision::fine, 1e-4},
                                         gradient_case{"olmo3", {}, train_precision::fine, 1e-4},
                                         gradient_case{"qwen3-moe", {}, train_precision::fine, 1e-4},
                                         gradient_case{"mixtral", {}, train_precision::fine, 1e-4},
                                         gradient_case{"olmoe", {}, train_precision::fine, 1e-4},
                                         gradient_case{"granite-moe", {}, train_precision::fine, 1e-4},
                                         gradient_case{"granite-hybrid", {}, train_precision::fine, 1e-4},
                                         gradient_case{"glm4-moe", {}, train_precision::fine, 1e-4},
                                         gradient_case{"glm", {}, train_precision::fine, 1e-4},
                                         gradient_case{"glm4", {}, train_precision::fine, 1e-4},
                                         gradient_case{"ernie", {}, train_precision::fine, 1e-4},
                                         gradient_case{"cohere", {}, train_precision::fine, 1e-4},
                                         gradient_case{"cohere2", {}, train_precision::fine, 1e-4},
                                         gradient_case{"qwen3.5", {}, train_precision::fine, 1e-4},
                                         gradient_case{"qwen3.5-moe", {}, train_precision::fine, 1e-4, {19, 1, 12}, 4},
                                         gradient_case{"qwen3-next", {}, train_precision::fine, 1e-4},
                                         gradient_case{"lfm2", {}, train_precision::fine, 1e-4},
                                         gradient_case{"lfm2-moe", {}, train_precision::fine, 1e-4},
                                         gradient_case{"gemma4", {}, train_precision::fine, 1e-4},
                                         gradient_case{"gemma4-small", {}, train_precision::fine, 1e-4},
                                         gradient_case{"gemma4-moe", {}, train_precision::fine, 1e-4},
                                         gradient_case{"deepseek2", {}, train_precision::fine, 1e-4},
                                         gradient_case{"deepseek3", {}, train_precision::fine, 1e-4},
                                         gradient_case{"glm4-moe-lite", {}, train_precision::fine, 1e-4},
                                         gradient_case{"granite-h", {}, train_precision::fine, 1e-4},
                                         gradient_case{"granite-h-moe", {}, train_precision::fine, 1e-4},
                                         gradient_case{"nemotron-h", {}, train_precision::fine, 1e-4},
                                         gradient_case{"nemotron-h-moe", {}, train_precision::fine, 1e-4},
                                         gradient_case{"seed-oss", {}, train_precision::fine, 1e-4},
                                         gradient_case{"arcee", {}, train_precision::fine, 1e-4},
                                         gradient_case{"exaone4", {}, train_precision::fine, 1e-4},
                                         gradient_case{"minimax-m2", {}, train_precision::fine, 1e-4},
                                         gradient_case{"ernie-moe", {}, train_precision::fine, 1e-4}),
                         name_of_case);

INSTANTIATE_TEST_SUITE_P(schemes, lora_gradients,
                         testing::Values(gradient_case{"llama", scheme::u8, train_precision::exact, 1e-4},
                                         gradient_case{"llama", scheme::u8, train_precision::fine, 1e-3},
                                         gradient_case{"gpt2", scheme::u8, train_precision::fine, 1e-3},
                                         gradient_case{"qwen3", scheme::u8g64, train_precision::fine, 1e-3},
                                         gradient_case{"qwen2", scheme::u8g64, train_precision::exact, 1e-4},
                                         gradient_case{"qwen3", scheme::q8, train_precision::exact, 1e-4},
                                         gradient_case{"mistral", scheme::q4, train_precision::exact, 1e-4},
                                         gradient_case{"llama", scheme::u4g32, train_precision::exact, 1e-4},
                                         gradient_case{"llama", scheme::mxfp4, train_precision::exact, 1e-4},
                                         gradient_case{"qwen3-moe", scheme::u8, train_precision::exact, 1e-4},
                                         gradient_case{"qwen3-moe", scheme::u8, train_precision::fine, 1e-3},
                                         gradient_case{"mixtral", scheme::u8g64, train_precision::fine, 1e-3},
                                         gradient_case{"qwen2-moe", scheme::u8, train_precision::exact, 1e-4},
                                         gradient_case{"qwen2-moe", scheme::u8, train_precision::fine, 1e-3},
                                         gradient_case{"glm4-moe", scheme::u8, train_precision::exact, 1e-4},
                                         gradient_case{"qwen3.5", scheme::u8, train_precision::exact, 1e-4},
                                         gradient_case{"qwen3.5", scheme::u8, train_precision::fine, 4e-3},
                                         gradient_case{"lfm2", scheme::u8, train_precision::exact, 1e-4},
                                         gradient_case{"lfm2", scheme::u8, train_precision::fine, 1e-3},
                                         gradient_case{"gemma4-small", scheme::u8, train_precision::exact, 1e-4},
                                         gradient_case{"deepseek3", scheme::u8, train_precision::exact, 1e-4},
                                         gradient_case{"deepseek3", scheme::u8, train_precision::fine, 4e-3},
                                         gradient_case{"qwen2", scheme::bf16, train_precision::exact, 1e-4}),
                         name_of_case);

}  // namespace
}  // namespace troupe
