#include "cli/model/evaluate_examples.hpp"

#include <algorithm>
#include <numeric>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/paths.hpp"
#include "cli/output.hpp"
#include "cli/progress.hpp"
#include "cli/standard_input.hpp"
#include "model/ops/isa.hpp"
#include "model/train/data/batch_plan.hpp"
#include "model/train/data/training_data.hpp"
#include "model/train/parameters/lora_parameters.hpp"
#include "model/train/passes/train_pass.hpp"

namespace troupe {
namespace {

training_data examples_in(const std::string& file, const data_format& format) {
  if (file != "-") return read_training_data(file, format);
  const file_descriptor kept = keep_standard_input();
  const std::string path = fmt::format("/proc/self/fd/{}", kept.number());
  try {
    return read_training_data(path, format);
  } catch (const input_error& error) {
    throw input_error(with_shown_path(error.what(), path, std::string(standard_input_name)));
  }
}

void note_shortened(const data_losses& losses, const data_format& format) {
  if (losses.shortened > 0)
    write_error(fmt::format("troupe: {} examples are cut to {} tokens, or begin beyond them and are left out{}\n",
                            losses.shortened, format.row_length,
                            format.row_length < format.context ? ": a longer --length keeps more" : ""));
}

/// Rows as training makes them of its validation data.
std::vector<training_rows> rows_of(const training_data& data, const batch_plan::options& chosen) {
  std::vector<std::size_t> every(data.examples.size());
  std::iota(every.begin(), every.end(), 0);
  return batch_plan(data, every, chosen).all();
}

std::int64_t most_rows_of(const std::vector<training_rows>& batches) {
  std::int64_t most = 0;
  for (const training_rows& batch : batches) most = std::max(most, batch.rows());
  return most;
}

pass_result measure_all(train_pass& pass, const std::vector<training_rows>& batches) {
  pass_result total;
  progress bar("evaluating");
  std::int64_t done = 0;
  for (const training_rows& batch : batches) {
    total.add(pass.measure(batch));
    bar.update(++done, static_cast<std::int64_t>(batches.size()));
  }
  return total;
}

}  // namespace

example_evaluation evaluate_examples(const model_options& options, const std::string& file, std::int64_t length) {
  const device_id device = device_of(options);
  thread_pool pool(thread_count(options));
  trained_model model = frozen(load_with_progress(options.path, load_options_of(options), pool));
  std::optional<lora_parameters> adapter;
  if (!options.adapter.empty()) {
    adapter.emplace(model, read_lora_options(options.adapter, model.config), 0);
    adapter->load(options.adapter, model.config);
  }
  const data_format format = data_format_of(options.path, model.config, std::min(length, model.config.context));
  const training_data data = examples_in(file, format);
  note_shortened(data.losses, format);
  const auto batches = rows_of(data, {.row_length = format.row_length});
  const parameter_set none;
  const auto pass = make_train_pass(model, adapter ? adapter->parameters() : none, {pool, kernels()},
                                    {.most_rows = most_rows_of(batches),
                                     .most_positions = format.row_length,
                                     .keep_activations = false,
                                     .device = device});
  const pass_result total = measure_all(*pass, batches);
  const auto targets = static_cast<double>(total.targets);
  return {static_cast<std::int64_t>(data.examples.size()), total.targets, total.loss / targets,
          static_cast<double>(total.correct) / targets};
}

}  // namespace troupe
