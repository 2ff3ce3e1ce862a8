#include "model/engine/engine.hpp"

#include "base/error.hpp"
#include "base/to_size.hpp"

namespace troupe {
namespace {

std::vector<std::unique_ptr<stage>> make_stages(const std::shared_ptr<const loaded_model>& model,
                                                const engine_options& options, const compute& with) {
  const std::vector<std::int64_t> whole = {model->config.layers};
  std::vector<std::unique_ptr<stage>> stages;
  std::int64_t first = 0;
  for (const std::int64_t layers : options.stage_layers.empty() ? whole : options.stage_layers) {
    const decoder::options part{.first_layer = first,
                                .layers = layers,
                                .max_rows = options.scheduler.max_batch_tokens,
                                .max_sequences = options.scheduler.max_sequences,
                                .kv = options.kv,
                                .blocks = options.scheduler.blocks,
                                .states = options.scheduler.places_of_states(),
                                .context = options.scheduler.context,
                                .device = options.device};
    stages.push_back(std::make_unique<stage>(model, part, options.lookup_tokens, with, options.tokens));
    first += layers;
  }
  if (first != model->config.layers)
    refuse("the stages hold {} layers, the model {}: split all of them", first, model->config.layers);
  return stages;
}

batch_scheduler::options knowing(batch_scheduler::options options, const model_config& model, const stage& first) {
  options.keeps_states = model.keeps_states();
  if (!options.is_known) options.is_known = [&first](adapter_version version) { return first.has_adapter(version); };
  return options;
}

}  // namespace

// NOLINTNEXTLINE(performance-unnecessary-value-param): once in an engine's life
engine::engine(std::shared_ptr<const loaded_model> model, engine_options options, const compute& with)
    : stages_(make_stages(model, options, with)),
      scheduler_(knowing(options.scheduler, model->config, *stages_.front()), model->config.vocab_size),
      hidden_(to_size(options.scheduler.max_batch_tokens * stages_.front()->hidden_stride())) {}

// NOLINTNEXTLINE(performance-unnecessary-value-param): every stage gets one of its own
void engine::add_adapter(adapter_version version, std::shared_ptr<const lora_adapter> adapter) {
  for (const auto& part : stages_) part->add_adapter(version, adapter);
}

void engine::remove_adapter(adapter_version version) {
  for (const auto& part : stages_) part->remove_adapter(version);
}

bool engine::step(instant now, const token_sink& on_token, const end_sink& on_end, const reading_sink& on_reading) {
  if (!scheduler_.plan_step(now, order_)) return false;
  scheduler_.commit(run_stages(), on_token, on_end, on_reading);
  return true;
}

const step_outcome& engine::run_stages() {
  for (const auto& part : stages_) part->begin(order_);
  stages_.front()->embed(hidden_.data());
  for (const auto& part : stages_) part->run(hidden_.data());
  return stages_.back()->finish(hidden_.data());
}

}  // namespace troupe
