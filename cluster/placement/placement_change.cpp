#include <algorithm>
#include <functional>
#include <iterator>
#include <set>
#include <utility>

#include "base/to_size.hpp"
#include "cluster/placement/placement_fit.hpp"
#include "cluster/placement/placement_pools.hpp"

namespace troupe {
namespace {

/// What every placement has to fit: the workers that are here, the model, and what the cluster's file asks for.
struct demands {
  const std::vector<worker_offer>& offers;
  const placement_request& request;
  detail::stage_costs costs;

  std::int64_t least_tokens() const { return detail::least_tokens(request); }
};

/// Whether a worker could take over a rank of a replica's stage.
bool can_hold(const worker_offer& worker, const replica_placement& replica, const stage_placement& stage,
              const demands& wanted) {
  if (worker.layers && *worker.layers != stage.layers) return false;
  if (const auto number = worker.replica_by_hand(); number && number != replica.number) return false;
  return wanted.costs.kv_tokens(stage.layers, worker.memory) >= wanted.least_tokens();
}

/// The offer of a worker; nullptr if there is none.
const worker_offer* offer_of(const std::string& name, const demands& wanted) {
  const auto found = std::ranges::find(wanted.offers, name, &worker_offer::name);
  return found == wanted.offers.end() ? nullptr : &*found;
}

/// The tokens that all workers of a replica have room for. A worker without an offer keeps what the replica has now.
std::int64_t room_of(const replica_placement& replica, const demands& wanted) {
  std::int64_t room = detail::most_tokens(wanted.costs, wanted.request);
  for (const stage_placement& stage : replica.stages)
    for (const std::string& name : stage.workers)
      if (const worker_offer* its = offer_of(name, wanted))
        room = std::min(room, wanted.costs.kv_tokens(stage.layers, its->memory));
      else if (!name.empty())
        room = std::min(room, replica.kv_tokens);
  return room;
}

/// The placement with the worker in this vacancy; nothing if it has no room there, alone or with others of its machine.
std::optional<placement> with_seat_taken(placement where, const worker_position& at, const worker_offer& worker,
                                         const demands& wanted) {
  replica_placement& replica = where.replicas[at.replica];
  stage_placement& stage = replica.stages[at.stage];
  if (!can_hold(worker, replica, stage, wanted)) return {};
  stage.workers[at.rank] = worker.name;
  replica.kv_tokens = room_of(replica, wanted);
  if (detail::fit_pools(where.replicas, wanted.offers, wanted.costs, wanted.least_tokens())) return {};
  std::erase(where.spares, worker.name);
  return where;
}

/// The first vacancy of each stage.
std::vector<worker_position> vacancies(const placement& where) {
  return seats_of(where, "");
}

/// Fills a vacancy, if possible one that completes a replica.
std::optional<placement_change> fill_vacancy(const placement& where, const worker_offer& worker,
                                             const demands& wanted) {
  std::optional<placement_change> chosen;
  for (const worker_position& at : vacancies(where)) {
    if (chosen && chosen->replica == at.replica) continue;
    auto after = with_seat_taken(where, at, worker, wanted);
    if (!after) continue;
    const bool completes = after->replicas[at.replica].is_complete();
    if (completes || !chosen)
      chosen = placement_change{std::move(*after), placement_change::kind::fills_stage, at.replica};
    if (completes) break;
  }
  return chosen;
}

/// Workers of replicas other than this one that lack others, so that they serve nobody.
std::vector<worker_position> stranded_beside(std::size_t replica, const placement& where) {
  std::vector<worker_position> found;
  for (std::size_t r = 0; r < where.replicas.size(); ++r) {
    if (r == replica || where.replicas[r].is_complete()) continue;
    const auto& stages = where.replicas[r].stages;
    for (std::uint32_t stage = 0; stage < stages.size(); ++stage)
      for (std::uint32_t rank = 0; rank < stages[stage].workers.size(); ++rank)
        if (!stages[stage].workers[rank].empty()) found.push_back({{stage, rank}, r});
  }
  return found;
}

std::optional<placement> with_seat_taken_by_stranded(const placement& where, const worker_position& seat,
                                                     const demands& wanted) {
  for (const worker_position& from : stranded_beside(seat.replica, where)) {
    placement without = where;
    const std::string name = std::exchange(without.replicas[from.replica].stages[from.stage].workers[from.rank], "");
    const worker_offer* its = offer_of(name, wanted);
    if (its == nullptr) continue;
    if (auto after = with_seat_taken(std::move(without), seat, *its, wanted)) return after;
  }
  return {};
}

std::optional<placement> completed_by_stranded(placement where, std::size_t replica, const demands& wanted) {
  while (!where.replicas[replica].is_complete()) {
    const auto seats = vacancies(where);
    const auto seat =
        std::find_if(seats.begin(), seats.end(), [&](const auto& each) { return each.replica == replica; });
    auto after = with_seat_taken_by_stranded(where, *seat, wanted);
    if (!after) return {};
    where = std::move(*after);
  }
  return where;
}

/// Completes a replica with workers of others that serve nobody either.
std::optional<placement_change> complete_one(const placement& where, const demands& wanted) {
  for (std::size_t r = 0; r < where.replicas.size(); ++r) {
    if (where.replicas[r].is_complete()) continue;
    if (auto after = completed_by_stranded(where, r, wanted))
      return placement_change{std::move(*after), placement_change::kind::fills_stage, r};
  }
  return {};
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
std::optional<placement> with_replica(placement where, replica_placement added, const demands& wanted) {
  for (const auto& stage : added.stages)
    for (const auto& worker : stage.workers) std::erase(where.spares, worker);
  where.replicas.push_back(std::move(added));
  if (detail::fit_pools(where.replicas, wanted.offers, wanted.costs, wanted.least_tokens())) return {};
  return where;
}

/// Whose company the newcomer may keep: of its own replica by hand, or if it has none, of any. Those by hand come first
/// (no number is the least): their idle workers can serve in no other.
std::set<std::optional<int>, std::greater<>> numbers_to_try(const worker_offer& joining,
                                                            const std::vector<worker_offer>& idle) {
  std::set<std::optional<int>, std::greater<>> numbers{joining.replica_by_hand()};
  if (joining.replica_by_hand()) return numbers;
  for (const worker_offer& each : idle) numbers.insert(each.replica_by_hand());
  return numbers;
}

std::optional<placement> first_that_fits(const placement& where, const std::vector<replica_placement>& replicas,
                                         const demands& wanted) {
  for (const replica_placement& each : replicas)
    if (auto after = with_replica(where, each, wanted)) return after;
  return {};
}

/// Makes a replica of the newcomer and idle workers, or of the newcomer alone. `is_there`: replicas by hand that exist
/// already.
std::optional<placement> make_replica(const placement& where, const worker_offer& joining,
                                      const std::set<int>& is_there, const demands& wanted) {
  placement_request as_many_as_fit = wanted.request;
  as_many_as_fit.replicas = 0;
  std::vector<worker_offer> idle;
  for (const auto& each : wanted.offers)
    if (each.name != joining.name && !find_worker(where, each.name)) idle.push_back(each);
  for (const auto number : numbers_to_try(joining, idle)) {
    if (number && is_there.contains(*number)) continue;
    for (const auto& some : {company(joining, idle, number), std::vector<worker_offer>{joining}})
      if (const auto placed = place(some, wanted.costs.model(), as_many_as_fit))
        if (auto after = first_that_fits(where, placed->replicas, wanted)) return after;
  }
  return {};
}

/// This replica instead of one that lacks workers, from which and from others it takes its own. Nothing if a machine
/// has no room for it beside what is left of the others.
std::optional<placement> with_replica_replaced(placement where, std::size_t replaced, const replica_placement& fresh,
                                               const demands& wanted) {
  for (const stage_placement& stage : std::exchange(where.replicas[replaced], fresh).stages)
    std::copy_if(stage.workers.begin(), stage.workers.end(), std::back_inserter(where.spares),
                 [](const std::string& name) { return !name.empty(); });
  for (const stage_placement& stage : fresh.stages)
    for (const std::string& name : stage.workers) {
      std::erase(where.spares, name);
      for (const worker_position& at : seats_of(where, name))
        if (at.replica != replaced) where.replicas[at.replica].stages[at.stage].workers[at.rank].clear();
    }
  if (detail::fit_pools(where.replicas, wanted.offers, wanted.costs, wanted.least_tokens())) return {};
  return where;
}

/// A replica of those who are here, whatever they held: to be called where none serves.
std::optional<placement_change> begin_anew(const placement& where, const demands& wanted) {
  placement_request as_many_as_fit = wanted.request;
  as_many_as_fit.replicas = 0;
  const auto placed = place(wanted.offers, wanted.costs.model(), as_many_as_fit);
  if (!placed) return {};
  for (const replica_placement& fresh : placed->replicas)
    for (std::size_t r = 0; r < where.replicas.size(); ++r)
      if (where.replicas[r].number == fresh.number)
        if (auto after = with_replica_replaced(where, r, fresh, wanted))
          return placement_change{std::move(*after), placement_change::kind::fills_stage, r};
  return {};
}

bool is_served(const placement& where) {
  return std::ranges::any_of(where.replicas, &replica_placement::is_complete);
}

std::set<int> numbers_by_hand(const placement& where) {
  std::set<int> numbers;
  for (const replica_placement& replica : where.replicas)
    if (replica.number) numbers.insert(*replica.number);
  return numbers;
}

}  // namespace

placement_change extend(const placement& current, const std::string& joining, const std::vector<worker_offer>& offers,
                        const model_shape& model, const placement_request& request) {
  using kind = placement_change::kind;
  placement_change change{current, kind::none, 0};
  const demands wanted{offers, request, {model, request.tensor}};
  const worker_offer* its = offer_of(joining, wanted);
  if (its == nullptr || find_worker(current, joining)) return change;
  const auto filled = fill_vacancy(current, *its, wanted);
  if (filled && filled->after.replicas[filled->replica].is_complete()) return *filled;
  if (filled)
    if (auto completed = complete_one(filled->after, wanted)) return *completed;
  std::erase(change.after.spares, joining);
  change.after.spares.push_back(joining);
  const bool may_be_more = request.replicas == 0 || current.replicas.size() < to_size(request.replicas);
  if (may_be_more)
    if (auto after = make_replica(change.after, *its, numbers_by_hand(current), wanted))
      return {std::move(*after), kind::new_replica, current.replicas.size()};
  if (!is_served(current))
    if (auto anew = begin_anew(change.after, wanted)) return *anew;
  return filled.value_or(change);
}

placement_change repair(const placement& current, const std::string& lost, const std::vector<worker_offer>& offers,
                        const model_shape& model, const placement_request& request) {
  using kind = placement_change::kind;
  placement_change change{current, kind::none, 0};
  std::erase(change.after.spares, lost);
  const auto at = find_worker(current, lost);
  if (!at) return change;
  change.after.replicas[at->replica].stages[at->stage].workers[at->rank].clear();
  change.effect = kind::vacancy;
  change.replica = at->replica;
  std::vector<const worker_offer*> free;
  for (const auto& each : offers)
    if (each.name != lost && !find_worker(current, each.name)) free.push_back(&each);
  std::stable_sort(free.begin(), free.end(), [](auto* a, auto* b) { return a->speed > b->speed; });
  const demands wanted{offers, request, {model, request.tensor}};
  for (const worker_offer* each : free)
    if (auto after = with_seat_taken(change.after, *at, *each, wanted))
      return {std::move(*after), kind::fills_stage, at->replica};
  return complete_one(change.after, wanted).value_or(change);
}

placement_change place_anew(const placement& current, const std::vector<worker_offer>& offers, const model_shape& model,
                            const placement_request& request) {
  const demands wanted{offers, request, {model, request.tensor}};
  return begin_anew(current, wanted).value_or(placement_change{current, placement_change::kind::none, 0});
}

}  // namespace troupe
