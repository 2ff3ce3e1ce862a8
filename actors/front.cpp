#include "actors/front.hpp"

#include "actors/adapters/adapter_store.hpp"
#include "actors/jobs/jobs.hpp"
#include "actors/requests/client_desk.hpp"
#include "actors/requests/gateway.hpp"
#include "actors/training/training_desk.hpp"
#include "base/error.hpp"

namespace troupe {
namespace {

/// The default folder of adapters is also where the store keeps them: sources are named, copies are digests.
std::shared_ptr<adapter_shelf> make_shelf(const front_parts& parts) {
  const cluster_config& config = *parts.config;
  adapter_shelf::options options;
  options.store = config.state_dir / "adapters";
  options.source = config.adapters.dir;
  options.model = parts.prompts->config();
  options.base = parts.model;
  options.base_name = config.model.path.filename().string();
  options.memory = config.adapters.memory;
  auto shelf = std::make_shared<adapter_shelf>(std::move(options), parts.book->load_catalogue());
  for (const std::string& adapter : config.adapters.preload) {
    try {
      shelf->load(adapter);
    } catch (const input_error& error) {
      refuse("{}: {}", place_of(config, "adapters.preload"), error.what());
    }
  }
  parts.book->save(shelf->take_changes());
  return shelf;
}

jobs_options options_of(const front_parts& parts) {
  const cluster_config& config = *parts.config;
  jobs_options options;
  options.say = parts.say;
  options.in_flight = 2 * static_cast<std::size_t>(config.scheduler.max_sequences);
  options.keep = std::chrono::days(config.keep_jobs_days);
  return options;
}

training_desk_parts training_of(const front_parts& parts, const front_handles& made) {
  const cluster_config& config = *parts.config;
  training_desk_parts training;
  training.intake.folder = config.state_dir / "training";
  training.intake.uploads = config.state_dir / "files";
  training.intake.model = config.model.path;
  training.intake.prompts = parts.prompts;
  training.model = parts.model;
  training.queue.leases_from = std::uint64_t{parts.reign} << 32;
  training.pace.may_delay = config.training.may_delay;
  training.adapter_memory = config.adapters.memory;
  training.idle_priority = config.training.idle_priority;
  training.jobs = made.jobs;
  training.store = made.store;
  training.board = parts.board;
  training.say = parts.say;
  return training;
}

template <message M>
void pass_to(wire& links, const auto& actor) {
  links.on<M>([actor](incoming<M> in) { tell(actor, std::move(in)); });
}

}  // namespace

front_handles start_front(caf::actor_system& system, wire& links, const front_parts& parts) {
  const auto shelf = make_shelf(parts);
  front_handles made;
  made.numbers = std::make_shared<request_numbers>();
  made.jobs = spawn_jobs(system, options_of(parts), parts.book, parts.prompts, made.numbers, parts.board,
                         parts.read_for_endpoint);
  const auto send_piece = [&links](link_id to, adapter_piece piece, std::uint64_t correlation) {
    links.send(to, std::move(piece), correlation);
  };
  parts.adapters->publish(shelf->snapshot());
  const auto workers = [directory = parts.directory] { return directory->workers(); };
  made.store = spawn_adapter_store(system, shelf, made.jobs, send_piece, workers, parts.adapters, parts.board);
  made.training = spawn_training_desk(system, training_of(parts, made));
  made.gateway = spawn_gateway(system, {}, parts.router, made.store, parts.prompts, parts.adapters, parts.board);
  made.desk = spawn_client_desk(system,
                                {made.gateway, made.store, made.jobs, made.training, parts.supervisor, parts.prompts,
                                 made.numbers, parts.board, parts.config->name},
                                &links);
  pass_to<client_request>(links, made.desk);
  pass_to<client_cancel>(links, made.desk);
  pass_to<client_command>(links, made.desk);
  pass_to<want_piece>(links, made.store);
  tell(made.jobs, begin_jobs{{}, made.gateway, made.training});
  return made;
}

void stop_front(const front_handles& handles) {
  tell(handles.desk, stop_now{});
  tell(handles.gateway, stop_now{});
  tell(handles.training, stop_now{});
  tell(handles.store, stop_now{});
  tell(handles.jobs, stop_now{});
}

}  // namespace troupe
