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

/// The folder where adapters are looked for is by default also the store. They do not collide: sources have names, and
/// the store's copies are named by digests.
adapter_shelf::options shelf_options_of(const cluster_config& config) {
  adapter_shelf::options options;
  options.store = config.state_dir / "adapters";
  options.source = config.adapters.dir;
  options.base_name = config.model.name;
  options.memory = config.adapters.memory;
  return options;
}

jobs_parts jobs_parts_of(const front_parts& parts, const front_handles& made) {
  return {.book = parts.book,
          .prompts = parts.prompts,
          .numbers = made.numbers,
          .board = parts.board,
          .read_for_endpoint = parts.read_for_endpoint,
          .say = parts.say,
          .in_flight = 2 * to_size(parts.config->scheduler.max_sequences),
          .keep = std::chrono::days(parts.config->keep_jobs_days)};
}

training_desk_parts training_parts_of(const front_parts& parts, const front_handles& made) {
  const cluster_config& config = *parts.config;
  return {.jobs = made.jobs,
          .store = made.store,
          .board = parts.board,
          .say = parts.say,
          .intake = {.folder = config.state_dir / "training",
                     .uploads = config.state_dir / "files",
                     .model = config.model.path,
                     .base_name = config.model.name,
                     .prompts = parts.prompts},
          .base = parts.base,
          .queue = {.leases_from = std::uint64_t{parts.reign} << 32},
          .may_delay = config.training.may_delay,
          .adapter_memory = config.adapters.memory,
          .quantization = parts.quantization,
          .idle_priority = config.training.idle_priority,
          .adapter_folder = config.adapters.dir};
}

gateway_parts gateway_parts_of(const front_parts& parts, const front_handles& made) {
  return {.router = parts.router,
          .store = made.store,
          .prompts = parts.prompts,
          .adapters = parts.adapters,
          .board = parts.board,
          .max_waiting = to_size(parts.config->scheduler.max_waiting)};
}

}  // namespace troupe
