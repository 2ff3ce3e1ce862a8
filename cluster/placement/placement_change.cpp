#include <algorithm>
#include <functional>
#include <iterator>
#include <set>

#include "cluster/placement/placement_fit.hpp"
#include "cluster/placement/placement_pools.hpp"

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

/// The placement with the worker in this vacancy; nothing if it has no room there, alone or with others of its machine.
std::optional<placement> with_seat_taken(placement where, const worker_position& at, const worker_offer& worker,
                                         const std::vector<worker_offer>& offers, const stage_costs& costs,
                                         const placement_request& request) {
  replica_placement& replica = where.replicas[at.replica];
  stage_placement& stage = replica.stages[at.stage];
  if (!can_hold(worker, replica, stage, costs, request)) return {};
  stage.workers[at.rank] = worker.name;
  replica.kv_tokens = room_of(replica, offers, costs, request);
  if (detail::fit_pools(where.replicas, offers, costs, detail::least_tokens(request))) return {};
  std::erase(where.spares, worker.name);
  return where;
}

/// The first vacancy of each stage.
std::vector<worker_position> vacancies(const placement& where) {
  std::vector<worker_position> found;
  for (std::size_t r = 0; r < where.replicas.size(); ++r) {
    const auto& stages = where.replicas[r].stages;
    for (std::size_t s = 0; s < stages.size(); ++s) {
      const auto& workers = stages[s].workers;
      const auto seat = std::find(workers.begin(), workers.end(), "");
      if (seat != workers.end()) found.push_back({r, s, static_cast<std::size_t>(seat - workers.begin())});
    }
  }
  return found;
}

/// Fills a vacancy, if possible one that completes a replica.
std::optional<placement_change> fill_vacancy(const placement& where, const worker_offer& worker,
                                             const std::vector<worker_offer>& offers, const stage_costs& costs,
                                             const placement_request& request) {
  std::optional<placement_change> chosen;
  for (const worker_position& at : vacancies(where)) {
    if (chosen && chosen->replica == at.replica) continue;
    auto after = with_seat_taken(where, at, worker, offers, costs, request);
    if (!after) continue;
    const bool completes = after->replicas[at.replica].is_complete();
    if (completes || !chosen)
      chosen = placement_change{std::move(*after), placement_change::kind::fills_stage, at.replica};
    if (completes) break;
  }
  return chosen;
}

/// The newcomer, and the idle workers that by hand belong to no replica or to this one.
std::vector<worker_offer> company(const worker_offer& joining, const std::vector<worker_offer>& idle,
                                  std::optional<int> number) {
  std::vector<worker_offer> together{joining};
  std::copy_if(idle.begin(), idle.end(), std::back_inserter(together),
               [&](const worker_offer& each) { return !each.replica_by_hand() || each.replica_by_hand() == number; });
  return together;
}

/// The placement with one more replica; nothing if a machine that it shares with others has no room for it.
std::optional<placement> with_replica(placement where, replica_placement added, const std::vector<worker_offer>& offers,
                                      const model_shape& model, const placement_request& request) {
  for (const auto& stage : added.stages)
    for (const auto& worker : stage.workers) std::erase(where.spares, worker);
  where.replicas.push_back(std::move(added));
  const stage_costs costs(model, request.tensor);
  if (detail::fit_pools(where.replicas, offers, costs, detail::least_tokens(request))) return {};
  return where;
}

/// Makes a replica of the newcomer and idle workers, or of the newcomer alone. `is_there`: replicas by hand that exist
/// already.
std::optional<placement> make_replica(const placement& where, const worker_offer& joining,
                                      const std::vector<worker_offer>& offers, const std::set<int>& is_there,
                                      const model_shape& model, placement_request request) {
  request.replicas = 0;
  std::vector<worker_offer> idle;
  for (const auto& each : offers)
    if (each.name != joining.name && !find_worker(where, each.name)) idle.push_back(each);
  const auto own = joining.replica_by_hand();
  std::set<std::optional<int>, std::greater<>> numbers{own};
  for (const worker_offer& each : idle)
    if (!own && each.replica_by_hand()) numbers.insert(each.replica_by_hand());
  for (const auto number : numbers) {
    if (number && is_there.contains(*number)) continue;
    for (const auto& some : {company(joining, idle, number), std::vector<worker_offer>{joining}})
      if (const auto placed = place(some, model, request))
        for (const replica_placement& each : placed->replicas)
          if (auto after = with_replica(where, each, offers, model, request)) return after;
  }
  return {};
}

std::set<int> numbers_by_hand(const placement& where) {
  std::set<int> numbers;
  for (const replica_placement& replica : where.replicas)
    if (replica.number) numbers.insert(*replica.number);
  return numbers;
}

}  // namespace

placement_change extend(const placement& current, const worker_offer& joining, const std::vector<worker_offer>& others,
                        const model_shape& model, const placement_request& request) {
  using kind = placement_change::kind;
  placement_change change{current, kind::none, 0};
  if (find_worker(current, joining.name)) return change;
  std::vector<worker_offer> offers = others;
  std::erase_if(offers, [&](const auto& each) { return each.name == joining.name; });
  offers.push_back(joining);
  if (auto filled = fill_vacancy(current, joining, offers, stage_costs(model, request.tensor), request)) return *filled;
  std::erase(change.after.spares, joining.name);
  change.after.spares.push_back(joining.name);
  if (request.replicas != 0 && current.replicas.size() >= static_cast<std::size_t>(request.replicas)) return change;
  if (auto after = make_replica(change.after, joining, offers, numbers_by_hand(current), model, request))
    change = {std::move(*after), kind::new_replica, current.replicas.size()};
  return change;
}

placement_change repair(const placement& current, const std::string& lost, const std::vector<worker_offer>& others,
                        const model_shape& model, const placement_request& request) {
  using kind = placement_change::kind;
  placement_change change{current, kind::none, 0};
  std::erase(change.after.spares, lost);
  const auto at = find_worker(current, lost);
  if (!at) return change;
  change.after.replicas[at->replica].stages[at->stage].workers[at->rank].clear();
  change.what = kind::vacancy;
  change.replica = at->replica;
  std::vector<const worker_offer*> free;
  for (const auto& each : others)
    if (each.name != lost && !find_worker(current, each.name)) free.push_back(&each);
  std::stable_sort(free.begin(), free.end(), [](auto* a, auto* b) { return a->speed > b->speed; });
  const stage_costs costs(model, request.tensor);
  for (const worker_offer* each : free)
    if (auto after = with_seat_taken(change.after, *at, *each, others, costs, request))
      return {std::move(*after), kind::fills_stage, at->replica};
  return change;
}

}  // namespace troupe
