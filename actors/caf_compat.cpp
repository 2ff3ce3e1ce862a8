#include "actors/caf_compat.hpp"

#include <thread>

namespace troupe {

caf::actor_system_config system_config(std::size_t threads) {
  caf::actor_system_config config;
  config.set("scheduler.policy", caf::atom("sharing"));
  config.set("scheduler.max-threads", threads);
  return config;
}

std::size_t own_threads(caf::actor_system& system) {
  return system.detached_actors();
}

bool await_own_threads(caf::actor_system& system, std::size_t before, duration patience) {
  system.clock().cancel_all();
  constexpr std::chrono::milliseconds look_interval(5);
  for (duration waited{}; own_threads(system) > before && waited < patience; waited += look_interval)
    std::this_thread::sleep_for(look_interval);
  return own_threads(system) <= before;
}

}  // namespace troupe
