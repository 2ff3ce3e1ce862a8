#include "model/train/passes/train_pass.hpp"

#include "base/error.hpp"
#include "model/arch/device.hpp"
#include "model/arch/gpu.hpp"
#include "model/text/model_text.hpp"
#include "model/train/passes/cpu_train_memory.hpp"
#include "model/train/passes/cpu_train_pass.hpp"
#include "model/train/passes/gpu_pass.hpp"

namespace troupe {
namespace {

/// Without this the system would end a process of its choice, perhaps one that serves. A pass on a GPU takes its memory
/// there, and what lies beside it is in the host's all the same.
void check_memory(const trained_model& model, const train_pass::options& chosen, int threads) {
  const auto free = free_memory({});
  const std::int64_t beside = chosen.bytes_beside;
  const std::int64_t pass = chosen.device.is_cpu() ? pass_bytes(model, chosen, threads) : 0;
  if (!free || pass + beside <= *free) return;
  const auto fail = [&](std::int64_t most, const std::string& what, std::string_view remedy) {
    throw full_error(fmt::format("the run takes {} MiB, {} of them for {}, and {} MiB are free: {}",
                                 (pass + beside) >> 20, most >> 20, what, *free >> 20, remedy));
  };
  if (beside <= std::min(pass, *free))
    fail(pass, fmt::format("a pass of {} tokens", chosen.most_rows), "lower --length or --batch, or use --low-memory");
  fail(beside, "the optimizer and copies of what is trained",
       model.base ? "lower --rank, or name fewer --targets" : "train an adapter instead of --full, or a smaller model");
}

}  // namespace

void check_trainable(const device_id& device, const model_config& config) {
  if (device.is_cpu()) return;
  if (const auto missing = gpus_lack_for_training(config); !missing.empty())
    refuse("{}: {}: use the device cpu", name_of(device), missing);
}

std::unique_ptr<train_pass> make_train_pass(const trained_model& model, const parameter_set& parameters,
                                            const compute& with, train_pass::options chosen) {
  if (model.config.query_growth != 0 && chosen.most_positions > model.config.rope.original_context)
    refuse(
        "rows of {} tokens: beyond {} the model's queries grow, which training does not compute so far: lower --length",
        chosen.most_positions, model.config.rope.original_context);
  check_trainable(chosen.device, model.config);
  check_memory(model, chosen, with.pool.threads());
  if (chosen.device.is_cpu()) return std::make_unique<cpu_train_pass>(model, with, chosen);
  return make_cuda_train_pass(model, parameters, with, std::move(chosen));
}

void check_rows(const training_rows& batch, const train_pass::options& options, const model_config& config) {
  if (batch.rows() > options.most_rows) refuse("a batch of {} rows: at most {} fit", batch.rows(), options.most_rows);
  for (const auto& segment : batch.segments)
    if (segment.rows > options.most_positions)
      refuse("an example of {} tokens: at most {} fit", segment.rows, options.most_positions);
  check_tokens(batch.tokens, config.vocab_size);
  for (const std::int32_t& target : batch.targets)
    if (target >= 0) check_tokens({&target, 1}, config.vocab_size);
}

}  // namespace troupe
