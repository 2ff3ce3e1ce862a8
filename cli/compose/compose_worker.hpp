#pragma once
#include <memory>

#include "actors/wire.hpp"
#include "actors/workers/stage_ranks.hpp"
#include "actors/workers/worker_meter.hpp"
#include "cli/compose/compose_site.hpp"

namespace troupe {

/// The actors of a worker, wherever its head is.
struct worker_handles {
  std::shared_ptr<worker_meter> meter = std::make_shared<worker_meter>();
  std::shared_ptr<rank_alarm> alarm = std::make_shared<rank_alarm>();
  worker_actor worker;
  adapter_fetcher_actor fetcher;
};

worker_handles start_worker(caf::actor_system& system, const node_site& site, wire& links,
                            const workers_head_actor& head);

}  // namespace troupe
