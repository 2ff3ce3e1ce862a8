// Short runs that train an adapter for a golden model.
#pragma once
#include <memory>
#include <optional>
#include <vector>

#include "base/to_size.hpp"
#include "model/ops/isa.hpp"
#include "model/train/parameters/lora_parameters.hpp"
#include "model/train/run/training_run.hpp"
#include "tests/model/train/passes/train_fixture.hpp"

namespace troupe {

/// Examples of many lengths, in which each token determines the next.
inline training_data counting_data(std::int64_t vocabulary, std::size_t examples) {
  training_data data;
  for (std::size_t i = 0; i < examples; ++i) {
    training_example& example = data.examples.emplace_back();
    for (std::size_t j = 0; j < 4 + i * 7 % 13; ++j) {
      example.tokens.push_back(static_cast<token_id>((i * 5 + j * 3) % to_size(vocabulary)));
      example.learned.push_back(j % 4 != 3);
    }
  }
  data.fingerprint = examples;
  return data;
}

inline training_options quick_options() {
  training_options o;
  o.row_length = 24, o.batch_rows = 2, o.accumulation = 2, o.epochs = 3, o.rate = 1e-2, o.warmup = 2;
  o.dropout = 0.25, o.validation_share = 0.1, o.seed = 11, o.adam.weight_decay = 0.01;
  return o;
}

/// A golden model, an adapter for it and a run. Cannot be moved, since the members refer to each other.
struct adapter_run {
  adapter_run(const char* model, int threads, const training_options& options, const training_data& data,
              std::optional<scheme> quant = scheme::u8,
              const lora_options& adapter = {.factors = {.rank = 3, .alpha = 6}})
      : pool(threads),
        base(load_golden(model, pool, quant)),
        trained(frozen(base)),
        lora(trained, adapter, options.seed),
        run(trained, lora.parameters(), {pool, kernels()}, data, nullptr, options) {}

  std::vector<float> values() const { return {lora.parameters().values().begin(), lora.parameters().values().end()}; }

  thread_pool pool;
  std::shared_ptr<const loaded_model> base;
  trained_model trained;
  lora_parameters lora;
  training_run run;
};

}  // namespace troupe
