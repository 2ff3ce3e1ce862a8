#include "actors/replicas/supervisor_settings.hpp"

#include "base/to_size.hpp"

namespace troupe {

supervisor_parts supervisor_settings_of(const cluster_config& config) {
  supervisor_parts parts;
  parts.config = config;
  parts.members.cluster = config.name;
  parts.members.detector = failure_detector::options::of(std::chrono::milliseconds(config.lost_after_ms));
  parts.wanted.replicas = config.replicas;
  parts.wanted.stages = config.stages;
  parts.wanted.tensor = config.tensor;
  parts.wanted.kv_memory = config.scheduler.kv_memory;
  parts.batches.max_batch_tokens = config.scheduler.max_batch_tokens;
  parts.batches.max_mixed_prompt_tokens = config.scheduler.max_mixed_prompt_tokens;
  parts.batches.max_sequences = config.scheduler.max_sequences;
  parts.batches.kept_beginnings = config.scheduler.kept_beginnings;
  parts.batches.max_waiting = to_size(config.scheduler.max_waiting);
  parts.batches.max_adapters = config.adapters.max_resident;
  parts.batches.adapter_patience = static_cast<std::uint64_t>(config.scheduler.adapter_patience);
  return parts;
}

}  // namespace troupe
