#include "actors/front.hpp"

#include "actors/adapters/adapter_store.hpp"
#include "actors/front_settings.hpp"
#include "actors/requests/client_desk.hpp"
#include "cluster/config/config_place.hpp"

namespace troupe {
namespace {

std::shared_ptr<adapter_shelf> make_shelf(const front_parts& parts) {
  const cluster_config& config = *parts.config;
  adapter_shelf::options options = shelf_options_of(config);
  options.model = parts.prompts->config();
  options.base = parts.base;
  options.quantization = parts.quantization;
  auto shelf = std::make_shared<adapter_shelf>(std::move(options), parts.book->load_catalogue());
  for (const preloaded_adapter& each : config.adapters.preload)
    at_key(config, "adapters.preload", [&] {
      if (each.folder.empty())
        shelf->preload(each.name);
      else
        shelf->preload(each.name, each.folder);
    });
  parts.book->save(shelf->take_changes());
  shelf->keep_changes();
  return shelf;
}

client_desk_parts desk_parts_of(const front_parts& parts, const front_handles& handles) {
  return {.links = parts.links,
          .gateway = handles.gateway,
          .store = handles.store,
          .jobs = handles.jobs,
          .training = handles.training,
          .supervisor = parts.supervisor,
          .prompts = parts.prompts,
          .numbers = handles.numbers,
          .board = parts.board,
          .cluster = parts.config->name,
          .model = parts.config->model.name};
}

}  // namespace

front_handles start_front(caf::actor_system& system, const front_parts& parts) {
  const auto shelf = make_shelf(parts);
  parts.adapters->publish(shelf->snapshot());
  front_handles handles;
  handles.numbers = std::make_shared<request_numbers>();
  handles.jobs = spawn_jobs(system, jobs_parts_of(parts, handles));
  handles.store = spawn_adapter_store(system, {.shelf = shelf,
                                               .jobs = handles.jobs,
                                               .links = parts.links,
                                               .directory = parts.directory,
                                               .adapters = parts.adapters,
                                               .board = parts.board,
                                               .say = parts.say});
  handles.training = spawn_training_desk(system, training_parts_of(parts, handles));
  handles.gateway = spawn_gateway(system, gateway_parts_of(parts, handles));
  handles.desk = spawn_client_desk(system, desk_parts_of(parts, handles));
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
