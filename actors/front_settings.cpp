#include "actors/front_settings.hpp"

#include "base/paths.hpp"
#include "base/to_size.hpp"

namespace troupe {

journal::options journal_options_of(const cluster_config& config) {
  const std::filesystem::path& state = config.state_dir;
  journal::options options{.file = state / "journal.db",
                           .beside = {state / "files", state / "training"},
                           .max_tenant_bytes = config.key_files};
  for (const std::filesystem::path& folder : entries_of(state / "adapters"))
    if (is_sha256(folder.filename().string())) options.beside.push_back(folder);  // with another name: somebody's own
  return options;
}

gateway_parts gateway_of(const cluster_config& config) {
  gateway_parts parts;
  parts.max_waiting = to_size(config.scheduler.max_waiting);
  return parts;
}

/// The folder where adapters are looked for is by default also the store. They do not collide: sources have names, and
/// the store's copies are named by digests.
adapter_shelf::options shelf_of(const cluster_config& config) {
  adapter_shelf::options options;
  options.store = config.state_dir / "adapters";
  options.source = config.adapters.dir;
  options.base_name = config.model.name;
  options.memory = config.adapters.memory;
  return options;
}

jobs_parts jobs_of(const cluster_config& config) {
  jobs_parts parts;
  parts.in_flight = 2 * to_size(config.scheduler.max_sequences);
  parts.keep = std::chrono::days(config.keep_jobs_days);
  return parts;
}

training_desk_parts training_of(const cluster_config& config) {
  training_desk_parts parts;
  parts.intake.folder = config.state_dir / "training";
  parts.intake.uploads = config.state_dir / "files";
  parts.intake.model = config.model.path;
  parts.intake.base_name = config.model.name;
  parts.may_delay = config.training.may_delay;
  parts.adapter_memory = config.adapters.memory;
  parts.idle_priority = config.training.idle_priority;
  parts.adapter_folder = config.adapters.dir;
  return parts;
}

}  // namespace troupe
