#include <algorithm>

#include "cluster/placement_fit.hpp"

namespace troupe {
namespace {

using detail::stage_costs;

/// Whether a worker could take over a rank of a stage.
bool can_hold(const worker_offer& worker, const stage_placement& stage, const stage_costs& costs,
              const placement_request& request) {
  if (worker.layers && *worker.layers != stage.layers) return false;
  return costs.kv_tokens(stage.layers, worker.memory) >= detail::least_tokens(request);
}

void put(replica_placement& replica, stage_placement& stage, std::string& seat, const worker_offer& worker,
         const stage_costs& costs) {
  seat = worker.name;
  replica.kv_tokens = std::min(replica.kv_tokens, costs.kv_tokens(stage.layers, worker.memory));
}

/// The replica of which it fills a vacancy. One that it completes goes before others.
std::optional<std::size_t> fill_vacancy(placement& where, const worker_offer& worker, const stage_costs& costs,
                                        const placement_request& request) {
  for (const bool only_completing : {true, false}) {
    for (std::size_t r = 0; r < where.replicas.size(); ++r) {
      replica_placement& replica = where.replicas[r];
      for (auto& stage : replica.stages) {
        const auto seat = std::find(stage.workers.begin(), stage.workers.end(), "");
        if (seat == stage.workers.end() || !can_hold(worker, stage, costs, request)) continue;
        const replica_placement before = replica;
        put(replica, stage, *seat, worker, costs);
        if (!only_completing || replica.is_complete()) return r;
        replica = before;
        break;
      }
    }
  }
  return {};
}

/// A replica of the newcomer and those that had nothing to do, or of the newcomer alone.
std::optional<replica_placement> make_replica(const worker_offer& joining, std::vector<worker_offer> idle,
                                              const model_shape& model, placement_request request) {
  request.replicas = 0;
  idle.insert(idle.begin(), joining);
  for (const auto& offers : {idle, std::vector<worker_offer>{joining}})
    if (auto made = place(offers, model, request)) return std::move(made->replicas.front());
  return {};
}

void remove_spare(placement& where, const std::string& name) {
  std::erase(where.spares, name);
}

}  // namespace

placement_change extend(const placement& current, const worker_offer& joining, const std::vector<worker_offer>& spares,
                        const model_shape& model, const placement_request& request) {
  using kind = placement_change::kind;
  placement_change change{current, kind::none, 0};
  if (find_worker(current, joining.name)) return change;
  placement& after = change.after;
  remove_spare(after, joining.name);
  if (const auto filled = fill_vacancy(after, joining, stage_costs(model, request.tensor), request)) {
    change.what = kind::fills_stage;
    change.replica = *filled;
    return change;
  }
  after.spares.push_back(joining.name);
  if (request.replicas != 0 && after.replicas.size() >= static_cast<std::size_t>(request.replicas)) return change;
  std::vector<worker_offer> idle;
  for (const auto& spare : spares)
    if (spare.name != joining.name && !find_worker(current, spare.name)) idle.push_back(spare);
  auto made = make_replica(joining, std::move(idle), model, request);
  if (!made) return change;
  for (const auto& stage : made->stages)
    for (const auto& worker : stage.workers) remove_spare(after, worker);
  after.replicas.push_back(std::move(*made));
  change.what = kind::new_replica;
  change.replica = after.replicas.size() - 1;
  return change;
}

placement_change repair(const placement& current, const std::string& lost, const std::vector<worker_offer>& spares,
                        const model_shape& model, const placement_request& request) {
  using kind = placement_change::kind;
  placement_change change{current, kind::none, 0};
  remove_spare(change.after, lost);
  const auto at = find_worker(current, lost);
  if (!at) return change;
  const stage_costs costs(model, request.tensor);
  replica_placement& replica = change.after.replicas[at->replica];
  stage_placement& stage = replica.stages[at->stage];
  std::string& seat = stage.workers[at->rank];
  seat.clear();
  change.what = kind::vacancy;
  change.replica = at->replica;
  const worker_offer* best = nullptr;
  for (const auto& spare : spares) {
    const bool is_free = spare.name != lost && !find_worker(current, spare.name);
    if (is_free && can_hold(spare, stage, costs, request) && (!best || spare.speed > best->speed)) best = &spare;
  }
  if (!best) return change;
  put(replica, stage, seat, *best, costs);
  remove_spare(change.after, best->name);
  change.what = kind::fills_stage;
  return change;
}

}  // namespace troupe
