// Models for tests, and what they compute for one sequence.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/thread_pool.hpp"
#include "model/arch/single_sequence.hpp"
#include "model/ops/isa.hpp"
#include "tests/model/formats/fixtures.hpp"

namespace troupe {

/// As the name of a test may be.
inline std::string test_name(std::string model) {
  for (const char sign : {'-', '.'}) std::replace(model.begin(), model.end(), sign, '_');
  return model;
}

/// For cases of a model in a scheme.
template <class Case>
std::string name_of(const testing::TestParamInfo<Case>& info) {
  return test_name(info.param.model) + "_" + std::string(name_of(info.param.quant));
}

/// A folder for packed models that is removed with this process, so that no build reads what another one packed.
inline const std::filesystem::path& test_cache() {
  static const test::temp_folder folder;
  return folder.path();
}

inline std::shared_ptr<const loaded_model> load_for_test(const std::filesystem::path& path,
                                                         std::optional<scheme> quant) {
  thread_pool pool(2);
  load_options options;
  options.quant = quant;
  options.cache = test_cache();
  return load_model(path, options, pool);
}

struct run_options {
  const lora_adapter* adapter = nullptr;
  int chunk = 512;
  int threads = 2;
  const kernel_table* table = &kernels();
  kv_kind kv = kv_kind::f32;
  device_id device = {};
};

/// Logits after every token, [tokens, vocab].
inline std::vector<float> logits_of(std::shared_ptr<const loaded_model> model, const std::vector<std::int32_t>& tokens,
                                    const run_options& options = {}) {
  thread_pool pool(options.threads);
  single_sequence sequence(model, {options.adapter, options.chunk, 0, options.kv, options.device},
                           {pool, *options.table});
  std::vector<float> all;
  sequence.feed(
      tokens, [&](std::size_t, std::span<const float> logits) { all.insert(all.end(), logits.begin(), logits.end()); });
  return all;
}

inline std::vector<std::int32_t> greedy_tokens(std::shared_ptr<const loaded_model> model,
                                               const std::vector<std::int32_t>& prompt, int steps,
                                               const run_options& options = {}) {
  thread_pool pool(options.threads);
  single_sequence sequence(model, {options.adapter, options.chunk, 0, options.kv, options.device},
                           {pool, *options.table});
  std::span<const float> logits = sequence.feed(prompt);
  std::vector<std::int32_t> tokens;
  while (true) {
    tokens.push_back(static_cast<std::int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin()));
    if (static_cast<int>(tokens.size()) == steps) return tokens;
    logits = sequence.feed(std::span(&tokens.back(), 1));
  }
}

}  // namespace troupe
