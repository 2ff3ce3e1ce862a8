#include <algorithm>
#include <functional>
#include <iterator>
#include <set>

#include "cluster/placement/placement_fit.hpp"

namespace troupe {
namespace {

using detail::stage_costs;

/// Whether a worker could take over a rank of a replica's stage.
bool can_hold(const worker_offer& worker, const replica_placement& replica, const stage_placement& stage,
              const stage_costs& costs, const placement_request& request) {
  if (worker.layers && *worker.layers != stage.layers) return false;
  if (const auto number = worker.replica_by_hand(); number && number != replica.number) return false;
  return costs.kv_tokens(stage.layers, worker.memory) >= detail::least_tokens(request);
}

/// The tokens that all workers of a replica have room for. A worker without an offer keeps what the replica has now.
std::int64_t room_of(const replica_placement& replica, const std::vector<worker_offer>& offers,
                     const stage_costs& costs, const placement_request& request) {
  std::int64_t room = detail::most_tokens(costs.model(), request);
  for (const stage_placement& stage : replica.stages) {
    for (const std::string& name : stage.workers) {
      const auto its = std::find_if(offers.begin(), offers.end(), [&](const auto& each) { return each.name == name; });
      if (its != offers.end()) room = std::min(room, costs.kv_tokens(stage.layers, its->memory));
      if (its == offers.end() && !name.empty()) room = std::min(room, replica.kv_tokens);
    }
  }
  return room;
}

/// The replica of which it fills a vacancy. One that it completes goes before others.
std::optional<std::size_t> fill_vacancy(placement& where, const worker_offer& worker, std::vector<worker_offer> others,
                                        const stage_costs& costs, const placement_request& request) {
  std::erase_if(others, [&](const auto& each) { return each.name == worker.name; });
  others.push_back(worker);
  for (const bool only_completing : {true, false}) {
    for (std::size_t r = 0; r < where.replicas.size(); ++r) {
      replica_placement& replica = where.replicas[r];
      for (auto& stage : replica.stages) {
        const auto seat = std::find(stage.workers.begin(), stage.workers.end(), "");
        if (seat == stage.workers.end() || !can_hold(worker, replica, stage, costs, request)) continue;
        const replica_placement before = replica;
        *seat = worker.name;
        replica.kv_tokens = room_of(replica, others, costs, request);
        if (!only_completing || replica.is_complete()) return r;
        replica = before;
        break;
      }
    }
  }
  return {};
}

/// The newcomer, and those that had nothing to do and are of no replica by hand or of this one.
std::vector<worker_offer> company(const worker_offer& joining, const std::vector<worker_offer>& idle,
                                  std::optional<int> number) {
  std::vector<worker_offer> together{joining};
  std::copy_if(idle.begin(), idle.end(), std::back_inserter(together),
               [&](const worker_offer& each) { return !each.replica_by_hand() || each.replica_by_hand() == number; });
  return together;
}

/// A replica of the newcomer and those that had nothing to do, or of the newcomer alone. One that is named by hand is
/// made once: `is_there` says which are.
std::optional<replica_placement> make_replica(const worker_offer& joining, const std::vector<worker_offer>& idle,
                                              const std::set<int>& is_there, const model_shape& model,
                                              placement_request request) {
  request.replicas = 0;
  const auto own = joining.replica_by_hand();
  std::set<std::optional<int>, std::greater<>> numbers{own};
  for (const worker_offer& each : idle)
    if (!own && each.replica_by_hand()) numbers.insert(each.replica_by_hand());
  for (const auto number : numbers) {
    if (number && is_there.contains(*number)) continue;
    for (const auto& offers : {company(joining, idle, number), std::vector<worker_offer>{joining}})
      if (auto made = place(offers, model, request)) return std::move(made->replicas.front());
  }
  return {};
}

std::set<int> numbers_by_hand(const placement& where) {
  std::set<int> numbers;
  for (const replica_placement& replica : where.replicas)
    if (replica.number) numbers.insert(*replica.number);
  return numbers;
}

void remove_spare(placement& where, const std::string& name) {
  std::erase(where.spares, name);
}

}  // namespace

placement_change extend(const placement& current, const worker_offer& joining, const std::vector<worker_offer>& others,
                        const model_shape& model, const placement_request& request) {
  using kind = placement_change::kind;
  placement_change change{current, kind::none, 0};
  if (find_worker(current, joining.name)) return change;
  placement& after = change.after;
  remove_spare(after, joining.name);
  if (const auto filled = fill_vacancy(after, joining, others, stage_costs(model, request.tensor), request)) {
    change.what = kind::fills_stage;
    change.replica = *filled;
    return change;
  }
  after.spares.push_back(joining.name);
  if (request.replicas != 0 && after.replicas.size() >= static_cast<std::size_t>(request.replicas)) return change;
  std::vector<worker_offer> idle;
  for (const auto& each : others)
    if (each.name != joining.name && !find_worker(current, each.name)) idle.push_back(each);
  auto made = make_replica(joining, idle, numbers_by_hand(current), model, request);
  if (!made) return change;
  for (const auto& stage : made->stages)
    for (const auto& worker : stage.workers) remove_spare(after, worker);
  after.replicas.push_back(std::move(*made));
  change.what = kind::new_replica;
  change.replica = after.replicas.size() - 1;
  return change;
}

placement_change repair(const placement& current, const std::string& lost, const std::vector<worker_offer>& others,
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
  for (const auto& each : others) {
    const bool is_free = each.name != lost && !find_worker(current, each.name);
    if (is_free && can_hold(each, replica, stage, costs, request) && (!best || each.speed > best->speed)) best = &each;
  }
  if (!best) return change;
  seat = best->name;
  replica.kv_tokens = room_of(replica, others, costs, request);
  remove_spare(change.after, best->name);
  change.what = kind::fills_stage;
  return change;
}

}  // namespace troupe
