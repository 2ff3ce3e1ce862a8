#include "cluster/placement/placement.hpp"

#include <algorithm>
#include <cassert>
#include <map>
#include <string_view>

#include <fmt/format.h>

#include "base/size_text.hpp"
#include "base/to_size.hpp"
#include "cluster/config/config_place.hpp"
#include "cluster/placement/placement_pools.hpp"
#include "cluster/placement/placement_units.hpp"

namespace troupe {
namespace {

using detail::least_tokens;
using detail::most_tokens;
using detail::placement_unit;
using detail::unit_demand;
using detail::unit_order;

template <class T>
using placed = result<T, placement_error>;
using offers = std::vector<const worker_offer*>;

/// Places workers: by hand first, then by memory and speed.
class placer {
 public:
  placer(const std::vector<worker_offer>& workers, const model_shape& model, const placement_request& request)
      : workers_(workers),
        request_(request),
        costs_(model, request.tensor),
        least_(least_tokens(request)),
        most_(most_tokens(costs_, request)) {}

  placed<placement> place() {
    offers free;
    for (const auto& worker : workers_) {
      if (const auto number = worker.replica_by_hand()) {
        wishes& wish = by_hand_[*number];
        (worker.layers ? wish.fixed : wish.reserved).push_back(&worker);
      } else {
        free.push_back(&worker);
      }
    }
    free_ = detail::make_units(free, request_.tensor);
    if (auto failure = place_by_hand()) return *failure;
    if (auto failure = place_the_rest()) return *failure;
    if (auto failure = share_pools()) return *failure;
    return placement{replicas_, find_spares()};
  }

 private:
  using failure = std::optional<placement_error>;
  struct wishes {
    offers fixed, reserved;
  };

  const model_shape& model() const { return costs_.model(); }

  failure place_by_hand() {
    for (auto& [number, wish] : by_hand_) {
      auto replica = make_by_hand(number, wish);
      if (!replica) return replica.error();
      replicas_.push_back(std::move(replica.value()));
    }
    const auto wanted = to_size(request_.replicas);
    if (wanted != 0 && replicas_.size() > wanted)
      return placement_error{
          fmt::format("nodes name {} replicas, but replicas = {}: make them agree", replicas_.size(), wanted),
          "cluster.replicas"};
    return {};
  }

  placed<replica_placement> make_by_hand(int number, wishes& wish) {
    replica_placement replica{.kv_tokens = most_, .number = number};
    std::stable_sort(wish.fixed.begin(), wish.fixed.end(), [](auto* a, auto* b) { return *a->layers < *b->layers; });
    auto reserved = detail::make_units(wish.reserved, request_.tensor);
    int next = 0;
    for (auto at = wish.fixed.begin(); at != wish.fixed.end();) {
      const auto end = std::find_if(at, wish.fixed.end(), [&](auto* each) { return each->layers != (*at)->layers; });
      if (auto wrong = check_fixed({at, end}, next, number)) return *wrong;
      if (auto wrong = fill_gap(replica, reserved, {next, (*at)->layers->first - 1}, number)) return *wrong;
      next = (*at)->layers->last + 1;
      add_fixed(replica, {at, end});
      at = end;
    }
    if (auto wrong = fill_gap(replica, reserved, {next, model().layers - 1}, number)) return *wrong;
    return replica;
  }

  /// The workers of one stage that was placed by hand.
  failure check_fixed(const offers& stage, int next, int replica) const {
    const worker_offer& worker = *stage.front();
    const layer_range layers = *worker.layers;
    const auto wrong = [&](std::string text) {
      return placement_error{std::move(text), node_key(worker.name, "layers")};
    };
    if (layers.last >= model().layers)
      return wrong(fmt::format("layers {} of {} go beyond the model, which has {}: the last is {}", to_text(layers),
                               worker.name, model().layers, model().layers - 1));
    if (layers.first < next)
      return wrong(fmt::format("layers {} of {} overlap others of replica {}: every layer has one stage",
                               to_text(layers), worker.name, replica));
    if (static_cast<int>(stage.size()) != request_.tensor)
      return wrong(fmt::format("layers {} of replica {} are on {} workers, but tensor = {}: name as many",
                               to_text(layers), replica, stage.size(), request_.tensor));
    for (const auto* each : stage)
      if (costs_.kv_tokens(layers, each->memory) < least_) return too_small(*each, layers);
    return {};
  }

  placement_error too_small(const worker_offer& worker, layer_range layers) const {
    const std::uint64_t kv = costs_.kv_per_token(layers) * static_cast<std::uint64_t>(least_) + costs_.states(layers);
    return {fmt::format("{} has {} of memory, but layers {} need {} of weights and {} for {}: give it fewer layers, or "
                        "use a smaller {}",
                        worker.name, size_text(worker.memory), to_text(layers), size_text(costs_.weights(layers)),
                        size_text(kv), what_runs(), what_may_be_smaller()),
            node_key(worker.name, "layers")};
  }

  /// What takes memory beside the weights.
  std::string what_runs() const {
    return fmt::format("{} tokens{}", least_, keeps_states() ? " and the states of all sequences" : "");
  }
  std::string_view what_may_be_smaller() const {
    return keeps_states() ? "quant, context or max_sequences" : "quant or context";
  }
  bool keeps_states() const { return !model().state_bytes.empty(); }

  void add_fixed(replica_placement& replica, const offers& stage) const {
    stage_placement& added = replica.stages.emplace_back();
    added.layers = *stage.front()->layers;
    for (const auto* each : stage) {
      added.workers.push_back(each->name);
      replica.kv_tokens = std::min(replica.kv_tokens, costs_.kv_tokens(added.layers, each->memory));
    }
  }

  /// Gives layers that no worker has by hand to others.
  failure fill_gap(replica_placement& replica, std::vector<placement_unit>& reserved, layer_range run, int number) {
    if (run.count() <= 0) return {};
    const auto chosen = take_with_reserved(replica, reserved, run);
    if (!chosen) return gap_stays(run, number, !reserved.empty() || !free_.empty());
    append(replica, *chosen);
    return {};
  }

  /// Takes workers of this replica, else also workers of no replica.
  std::optional<detail::chosen_units> take_with_reserved(const replica_placement& replica,
                                                         std::vector<placement_unit>& reserved, layer_range run) {
    const auto stages = is_whole(run) ? stage_counts() : any_count();
    if (auto chosen = take(reserved, {run, stages}, replica, replicas_)) return chosen;
    std::vector<placement_unit> both = reserved;
    both.insert(both.end(), free_.begin(), free_.end());
    auto chosen = take(both, {run, stages}, replica, replicas_);
    if (chosen) keep_only(both, reserved);
    return chosen;
  }

  /// `has_workers`: some have no layers yet.
  placement_error gap_stays(layer_range run, int number, bool has_workers) const {
    if (!is_whole(run) && !has_workers)
      return {fmt::format("layers {} of replica {} are on no worker, and all workers have others by hand: give them to "
                          "one of these, or add a worker without \"layers\"",
                          to_text(run), number),
              "node"};
    return {fmt::format("layers {} of replica {} are on no worker, and no free workers have the memory: {}",
                        to_text(run), number, needs(run)),
            is_whole(run) ? "cluster.replicas" : "node"};
  }

  /// Keeps only those of the reserved and the free workers that are in `left`.
  void keep_only(const std::vector<placement_unit>& left, std::vector<placement_unit>& reserved) {
    const auto is_taken = [&](const auto& unit) {
      return std::none_of(left.begin(), left.end(), [&](const auto& each) { return each.workers == unit.workers; });
    };
    std::erase_if(free_, is_taken);
    std::erase_if(reserved, is_taken);
  }

  static void append(replica_placement& replica, const detail::chosen_units& chosen) {
    for (std::size_t i = 0; i < chosen.units.size(); ++i)
      replica.stages.push_back({chosen.how.stages[i], chosen.units[i].workers});
    replica.kv_tokens = std::min(replica.kv_tokens, chosen.how.kv_tokens);
  }

  static detail::stage_count any_count() { return {1, ~std::size_t{0}}; }
  detail::stage_count stage_counts() const {
    const auto wanted = to_size(request_.stages);
    return wanted ? detail::stage_count{wanted, wanted} : any_count();
  }

  /// Takes units for a run of layers of the replica `begun`. `others`: the replicas that are placed already.
  std::optional<detail::chosen_units> take(std::vector<placement_unit>& from, unit_demand wanted,
                                           const replica_placement& begun,
                                           const std::vector<replica_placement>& others) const {
    wanted.least = least_;
    wanted.most = begun.kv_tokens;
    const auto fits = [&](const detail::chosen_units& chosen) {
      std::vector<replica_placement> all = others;
      append(all.emplace_back(begun), chosen);
      return !detail::fit_pools(all, workers_, costs_, least_);
    };
    return detail::take_units(from, costs_, wanted, fits);
  }

  failure place_the_rest() {
    const auto wanted = to_size(request_.replicas);
    const std::size_t missing = wanted ? wanted - replicas_.size() : ~std::size_t{0};
    std::vector<replica_placement> more;
    if (wanted) more = make_replicas(missing, unit_order::fastest);
    if (!wanted || more.size() < missing) more = make_replicas(missing, unit_order::smallest);
    const std::size_t there = replicas_.size() + more.size();
    if (there == 0) return fits_nowhere();
    if (there < wanted)
      return placement_error{fmt::format("replicas = {}, but only {} fit{}: {}", wanted, there, there == 1 ? "s" : "",
                                         needs(whole_model())),
                             "cluster.replicas"};
    replicas_.insert(replicas_.end(), more.begin(), more.end());
    return {};
  }

  /// At most so many replicas of free workers. Since fewer and fewer workers are free, stages only become more.
  std::vector<replica_placement> make_replicas(std::size_t most, unit_order order) {
    std::vector<placement_unit> left = free_;
    std::vector<replica_placement> replicas;
    auto stages = stage_counts();
    while (replicas.size() < most) {
      const replica_placement begun{.kv_tokens = most_};
      std::vector<replica_placement> others = replicas_;
      others.insert(others.end(), replicas.begin(), replicas.end());
      const auto chosen = take(left, {whole_model(), stages, order}, begun, others);
      if (!chosen) break;
      stages.least = chosen->units.size();
      append(replicas.emplace_back(begun), *chosen);
    }
    return replicas;
  }

  /// Drops replicas that do not fit together. Refuses that if they were asked for by hand or by number.
  failure share_pools() {
    while (const auto crowded = detail::fit_pools(replicas_, workers_, costs_, least_)) {
      const bool is_asked_for = replicas_[*crowded].number || request_.replicas != 0;
      if (is_asked_for && replicas_.size() > 1)
        return placement_error{fmt::format("{} replicas do not fit into the memory of workers that share a machine: {}",
                                           replicas_.size(), needs(whole_model())),
                               "cluster.replicas"};
      replicas_.erase(replicas_.begin() + static_cast<std::ptrdiff_t>(*crowded));
      if (replicas_.empty()) return fits_nowhere();
    }
    return {};
  }

  placement_error fits_nowhere() const {
    return {"the model fits on no workers: " + needs(whole_model()), "model.path"};
  }

  layer_range whole_model() const { return {0, model().layers - 1}; }
  bool is_whole(layer_range run) const { return run.count() == model().layers; }

  std::string needs(layer_range run) const {
    const std::uint64_t memory = detail::memory_in_all(workers_);
    const std::string shape = request_.stages ? fmt::format(" in {} stages", request_.stages) : "";
    return fmt::format(
        "{} layers{} need {} of weights and {} for {}, and {} worker{} offer{} {} in all: use a smaller {}, or add "
        "workers",
        run.count(), shape, size_text(costs_.weights(run) * static_cast<std::uint64_t>(request_.tensor)),
        size_text(costs_.kv_in_all(run, least_)), what_runs(), workers_.size(), workers_.size() == 1 ? "" : "s",
        workers_.size() == 1 ? "s" : "", size_text(memory), what_may_be_smaller());
  }

  std::vector<std::string> find_spares() const {
    const placement all{replicas_, {}};
    std::vector<std::string> spares;
    for (const auto& worker : workers_)
      if (!find_worker(all, worker.name)) spares.push_back(worker.name);
    return spares;
  }

  const std::vector<worker_offer>& workers_;
  const placement_request& request_;
  detail::stage_costs costs_;
  std::int64_t least_, most_;  // tokens of KV
  std::map<int, wishes> by_hand_;
  std::vector<placement_unit> free_;
  std::vector<replica_placement> replicas_;
};

}  // namespace

bool replica_placement::is_complete() const {
  return std::none_of(stages.begin(), stages.end(), [](const auto& stage) {
    return std::find(stage.workers.begin(), stage.workers.end(), "") != stage.workers.end();
  });
}

int stages_at_once(const replica_placement& replica, const std::vector<worker_offer>& offers) {
  std::map<std::string, int> busy;  // threads, by host
  int count = 0;
  for (const stage_placement& stage : replica.stages) {
    auto with_this = busy;
    bool fits = true;
    for (const worker_offer& worker : offers) {
      if (std::find(stage.workers.begin(), stage.workers.end(), worker.name) == stage.workers.end()) continue;
      with_this[worker.host] += worker.threads;
      fits = fits && (!busy.contains(worker.host) || with_this[worker.host] <= worker.processors);
    }
    if (!fits) continue;
    busy = std::move(with_this);
    ++count;
  }
  return count;
}

std::vector<worker_position> seats_of(const placement& where, const std::string& name) {
  std::vector<worker_position> seats;
  for (std::size_t r = 0; r < where.replicas.size(); ++r) {
    const auto& stages = where.replicas[r].stages;
    for (std::uint32_t stage = 0; stage < stages.size(); ++stage) {
      const auto& workers = stages[stage].workers;
      const auto found = std::find(workers.begin(), workers.end(), name);
      if (found != workers.end()) seats.push_back({{stage, static_cast<std::uint32_t>(found - workers.begin())}, r});
    }
  }
  return seats;
}

std::optional<worker_position> find_worker(const placement& where, const std::string& name) {
  const auto seats = seats_of(where, name);
  return seats.empty() ? std::nullopt : std::optional(seats.front());
}

result<placement, placement_error> place(const std::vector<worker_offer>& workers, const model_shape& model,
                                         const placement_request& request) {
  if (model.layers < 1) return placement_error{"the model has no layers", "model.path"};
  assert(request.tensor >= 1);
  if (request.stages > model.layers)
    return placement_error{
        fmt::format("stages = {}, but the model has {} layers: ask for no more", request.stages, model.layers),
        "cluster.stages"};
  return placer(workers, model, request).place();
}

}  // namespace troupe
