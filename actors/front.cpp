#include "actors/front.hpp"

#include "actors/adapters/adapter_store.hpp"
#include "actors/front_settings.hpp"
#include "actors/jobs/jobs.hpp"
#include "actors/requests/client_desk.hpp"
#include "actors/training/training_desk.hpp"
#include "base/to_size.hpp"

namespace troupe {
namespace {

/// The folder where adapters are looked for is by default also the store. They do not collide: sources have names, and
/// the store's copies are named by digests.
std::shared_ptr<adapter_shelf> make_shelf(const front_parts& parts) {
  const cluster_config& config = *parts.config;
  adapter_shelf::options options;
  options.store = config.state_dir / "adapters";
  options.source = config.adapters.dir;
  options.model = parts.prompts->config();
  options.base = parts.base;
  options.quantization = parts.quantization;
  options.base_name = config.model.name;
  options.memory = config.adapters.memory;
  auto shelf = std::make_shared<adapter_shelf>(std::move(options), parts.book->load_catalogue());
  for (const preloaded_adapter& each : config.adapters.preload)
    at_key(config, "adapters.preload",
           [&] { each.folder.empty() ? shelf->preload(each.name) : shelf->preload(each.name, each.folder); });
  parts.book->save(shelf->take_changes());
  shelf->keep_changes();
  return shelf;
}

jobs_parts jobs_of(const front_parts& parts, const front_handles& handles) {
  return {.book = parts.book,
          .prompts = parts.prompts,
          .numbers = handles.numbers,
          .board = parts.board,
          .read_for_endpoint = parts.read_for_endpoint,
          .say = parts.say,
          .in_flight = 2 * to_size(parts.config->scheduler.max_sequences),
          .keep = std::chrono::days(parts.config->keep_jobs_days)};
}

training_desk_parts training_of(const front_parts& parts, const front_handles& handles) {
  const cluster_config& config = *parts.config;
  return {.jobs = handles.jobs,
          .store = handles.store,
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

gateway_parts gateway_of(const front_parts& parts, const front_handles& handles) {
  gateway_parts made = gateway_of(*parts.config);
  made.router = parts.router;
  made.store = handles.store;
  made.prompts = parts.prompts;
  made.adapters = parts.adapters;
  made.board = parts.board;
  return made;
}

client_desk_parts desk_of(const front_parts& parts, const front_handles& handles) {
  return {.links = parts.links,
          .gateway = handles.gateway,
          .store = handles.store,
          .jobs = handles.jobs,
          .training = handles.training,
          .supervisor = parts.supervisor,
          .prompts = parts.prompts,
          .numbers = handles.numbers,
          .board = parts.board,
          .cluster = parts.config->name};
}

}  // namespace

front_handles start_front(caf::actor_system& system, const front_parts& parts) {
  const auto shelf = make_shelf(parts);
  parts.adapters->publish(shelf->snapshot());
  front_handles handles;
  handles.numbers = std::make_shared<request_numbers>();
  handles.jobs = spawn_jobs(system, jobs_of(parts, handles));
  handles.store = spawn_adapter_store(system, {.shelf = shelf,
                                               .jobs = handles.jobs,
                                               .links = parts.links,
                                               .directory = parts.directory,
                                               .adapters = parts.adapters,
                                               .board = parts.board,
                                               .say = parts.say});
  handles.training = spawn_training_desk(system, training_of(parts, handles));
  handles.gateway = spawn_gateway(system, gateway_of(parts, handles));
  handles.desk = spawn_client_desk(system, desk_of(parts, handles));
  parts.links->deliver_with_link<client_request>(handles.desk);
  parts.links->deliver_with_link<client_cancel>(handles.desk);
  parts.links->deliver_with_link<client_command>(handles.desk);
  parts.links->deliver_with_link<want_piece>(handles.store);
  tell(handles.jobs, begin_jobs{handles.gateway, handles.training});
  return handles;
}

void stop_front(const front_handles& handles) {
  tell(handles.desk, stop_now{});
  tell(handles.gateway, stop_now{});
  tell(handles.training, stop_now{});
  tell(handles.store, stop_now{});
  tell(handles.jobs, stop_now{});
}

}  // namespace troupe
