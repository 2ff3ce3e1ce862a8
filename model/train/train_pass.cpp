#include "model/train/train_pass.hpp"

#include "base/error.hpp"
#include "model/arch/device.hpp"
#include "model/arch/gpu.hpp"
#include "model/engine/text/model_text.hpp"
#include "model/train/cpu_train_pass.hpp"
#include "model/train/expert_pass.hpp"
#include "model/train/gpu_pass.hpp"

namespace troupe {
namespace {

/// What one token keeps until backward: most of what a pass takes. Experts keep nothing.
std::int64_t bytes_of_token(const trained_model& model, bool keep_activations) {
  const model_config& c = model.config;
  const auto layers = static_cast<std::int64_t>(model.layers.size());
  const std::int64_t attention = c.head_dim * ((c.attention_gate ? 3 : 2) * c.heads + 2 * c.kv_heads);
  const std::int64_t states = c.delta.channels() + 2 * c.delta.values();
  const std::int64_t mlp = (c.gated_mlp ? 2 : 1) * c.widest_mlp();
  const std::int64_t adapters = largest_rank(model) * static_cast<std::int64_t>(linear_kinds_of(c, 0).size());
  const std::int64_t a_layer = std::max(attention, states) + (c.output_norms ? 2 : 1) * c.hidden + mlp + adapters;
  return static_cast<std::int64_t>(sizeof(float)) * (layers * c.hidden + (keep_activations ? layers : 1) * a_layer);
}

std::int64_t kept_bytes(const trained_model& model, const train_pass::options& chosen) {
  const std::int64_t tokens = chosen.most_rows * bytes_of_token(model, chosen.keep_activations);
  return tokens + (model.config.experts > 0 ? expert_pass::bytes(model.config, chosen.most_rows) : 0);
}

/// Without this the system would end a process of its choice, perhaps one that serves.
void check_memory(const trained_model& model, const train_pass::options& chosen) {
  const auto free = free_memory(chosen.device);
  const std::int64_t kept = kept_bytes(model, chosen);
  if (free && kept > *free)
    refuse("a pass of {} tokens keeps {} MiB, and {} MiB are free: lower --length or --batch, or use --low-memory",
           chosen.most_rows, kept >> 20, *free >> 20);
}

}  // namespace

std::unique_ptr<train_pass> make_train_pass(const trained_model& model, const parameter_set& parameters,
                                            const compute& with, train_pass::options chosen) {
  if (model.config.query_growth != 0 && chosen.most_positions > model.config.rope.original_context)
    refuse(
        "rows of {} tokens: beyond {} the model's queries grow, which training does not compute so far: lower --length",
        chosen.most_positions, model.config.rope.original_context);
  if (chosen.device.is_cpu()) {
    check_memory(model, chosen);
    return std::make_unique<cpu_train_pass>(model, with, std::move(chosen));
  }
  if (const auto missing = gpus_lack_for_training(model.config); !missing.empty())
    refuse("{}: {}: use the device cpu", name_of(chosen.device), missing);
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
