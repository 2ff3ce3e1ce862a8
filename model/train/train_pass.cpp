#include "model/train/train_pass.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "model/train/cpu_train_pass.hpp"
#include "model/train/gpu_pass.hpp"

namespace troupe {

std::unique_ptr<train_pass> make_train_pass(const trained_model& model, const parameter_set& parameters,
                                            const compute& with, train_pass::options chosen) {
  if (chosen.device.is_cpu()) return std::make_unique<cpu_train_pass>(model, with, std::move(chosen));
  return make_cuda_train_pass(model, parameters, with, std::move(chosen));
}

void check_rows(const training_rows& batch, const train_pass::options& options, const model_config& config) {
  if (batch.rows() > options.most_rows) refuse("a batch of {} rows: at most {} fit", batch.rows(), options.most_rows);
  for (const auto& segment : batch.segments)
    if (segment.rows > options.most_positions)
      refuse("an example of {} tokens: at most {} fit", segment.rows, options.most_positions);
  const auto known = [&](std::int32_t token) { return token >= 0 && token < config.vocab_size; };
  if (!std::all_of(batch.tokens.begin(), batch.tokens.end(), known) ||
      !std::all_of(batch.targets.begin(), batch.targets.end(), [&](std::int32_t t) { return t < 0 || known(t); }))
    refuse("a token is not of the model's {}: the tokenizer belongs to another model", config.vocab_size);
}

}  // namespace troupe
