#include "cluster/placement/placement_units.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>

#include "base/to_size.hpp"

namespace troupe::detail {
namespace {

using indices = std::vector<std::size_t>;

placement_unit join(const std::vector<const worker_offer*>& members) {
  placement_unit unit{.host = members.front()->host, .memory = members.front()->memory};
  double slowest = members.front()->speed;
  for (const auto* member : members) {
    unit.workers.push_back(member->name);
    unit.memory = std::min(unit.memory, member->memory);
    slowest = std::min(slowest, member->speed);
    if (member->host != unit.host) unit.host.clear();
  }
  unit.speed = std::max(slowest, 1e-9) * static_cast<double>(members.size());
  return unit;
}

/// Moves workers in groups of this size, each of workers with similar memory, from `workers` to `units`.
void join_alike(std::vector<const worker_offer*>& workers, std::size_t size, std::vector<placement_unit>& units) {
  std::stable_sort(workers.begin(), workers.end(), [](auto* a, auto* b) { return a->memory > b->memory; });
  std::size_t at = 0;
  for (; workers.size() - at >= size; at += size)
    units.push_back(join(
        {workers.begin() + static_cast<std::ptrdiff_t>(at), workers.begin() + static_cast<std::ptrdiff_t>(at + size)}));
  workers.erase(workers.begin(), workers.begin() + static_cast<std::ptrdiff_t>(at));
}

/// The units' places in `units`, in the order in which they should be tried.
indices in_order(const std::vector<placement_unit>& units, unit_order order) {
  indices sorted(units.size());
  std::iota(sorted.begin(), sorted.end(), std::size_t{0});
  std::stable_sort(sorted.begin(), sorted.end(), [&](std::size_t a, std::size_t b) {
    return order == unit_order::fastest ? units[a].speed > units[b].speed : units[a].memory < units[b].memory;
  });
  return sorted;
}

/// The units of each host that has several, in their order. The host whose first unit is first comes first.
std::vector<indices> units_of_hosts(const std::vector<placement_unit>& units, const indices& sorted) {
  std::map<std::string, std::size_t> group_of;
  std::vector<indices> groups;
  for (const auto i : sorted) {
    if (units[i].host.empty()) continue;
    const auto [at, is_new] = group_of.try_emplace(units[i].host, groups.size());
    if (is_new) groups.emplace_back();
    groups[at->second].push_back(i);
  }
  std::erase_if(groups, [](const indices& group) { return group.size() < 2; });
  return groups;
}

/// Groups of units in which to look for so many. Hosts with several units come first, since a replica on one host needs
/// no network between its stages; all units together come last. One unit has no other stage: only those whose own
/// workers are on several hosts come last.
std::vector<indices> candidate_groups(const std::vector<placement_unit>& units, indices sorted, std::size_t count) {
  std::vector<indices> groups;
  if (count > 1)
    groups = units_of_hosts(units, sorted);
  else  // clang 14 cannot compile that of std::ranges
    std::stable_partition(sorted.begin(), sorted.end(),
                          [&](std::size_t i) { return units[i].workers.size() == 1 || !units[i].host.empty(); });
  groups.push_back(std::move(sorted));
  return groups;
}

/// Whether memory could be enough at all, before the cuts are tried.
bool could_hold(const std::vector<placement_unit>& units, const stage_costs& costs, layer_range run,
                std::int64_t tokens) {
  auto kept = std::numeric_limits<std::uint64_t>::max();  // beside its weights, by the layer that keeps least
  for (int i = run.first; i <= run.last; ++i)
    kept = std::min(kept, costs.kv_per_token({i, i}) * static_cast<std::uint64_t>(tokens) + costs.states({i, i}));
  const auto layer = costs.model().layer_bytes / static_cast<std::uint64_t>(costs.tensor()) + kept;
  std::uint64_t room = 0;
  for (const auto& unit : units) room += layer ? unit.memory / layer : static_cast<std::uint64_t>(run.count());
  return room >= static_cast<std::uint64_t>(run.count());
}

/// The chosen units in their order, except that those of one host follow each other.
std::vector<placement_unit> picked(const std::vector<placement_unit>& units, indices chosen) {
  std::sort(chosen.begin(), chosen.end());
  std::map<std::string, std::size_t> host_order;
  for (const auto i : chosen) host_order.emplace(units[i].host, i);
  std::stable_sort(chosen.begin(), chosen.end(),
                   [&](auto a, auto b) { return host_order[units[a].host] < host_order[units[b].host]; });
  std::vector<placement_unit> result;
  for (const auto i : chosen) result.push_back(units[i]);
  return result;
}

void erase_all(std::vector<placement_unit>& from, indices chosen) {
  std::sort(chosen.begin(), chosen.end(), std::greater<>());
  for (const auto i : chosen) from.erase(from.begin() + static_cast<std::ptrdiff_t>(i));
}

}  // namespace

std::vector<placement_unit> make_units(const std::vector<const worker_offer*>& workers, int tensor) {
  std::vector<placement_unit> units;
  if (tensor == 1) {
    for (const auto* worker : workers) units.push_back(join({worker}));
    return units;
  }
  const auto size = to_size(tensor);
  std::map<std::string, std::vector<const worker_offer*>> by_host;
  std::vector<const worker_offer*> left;
  for (const auto* worker : workers) by_host[worker->host].push_back(worker);
  for (auto& [host, members] : by_host) {
    join_alike(members, size, units);
    left.insert(left.end(), members.begin(), members.end());
  }
  join_alike(left, size, units);
  return units;
}

std::optional<chosen_units> take_units(std::vector<placement_unit>& from, const stage_costs& costs,
                                       const unit_demand& wanted,
                                       const std::function<bool(const chosen_units&)>& is_right) {
  const auto& [run, stages, order, least, most] = wanted;
  const indices sorted = in_order(from, order);
  const std::size_t largest = std::min({stages.most, from.size(), to_size(run.count())});
  for (std::size_t count = stages.least; count <= largest; ++count) {
    for (const auto& group : candidate_groups(from, sorted, count)) {
      for (std::size_t at = 0; at + count <= group.size(); ++at) {
        const auto begin = group.begin() + static_cast<std::ptrdiff_t>(at);
        const indices chosen(begin, begin + static_cast<std::ptrdiff_t>(count));
        auto units = picked(from, chosen);
        if (!could_hold(units, costs, run, least)) continue;
        auto how = cut_for_most_tokens(costs, run, units, least, most);
        if (!how) continue;
        chosen_units found{std::move(units), std::move(*how)};
        if (!is_right(found)) continue;
        erase_all(from, chosen);
        return found;
      }
    }
  }
  return {};
}

}  // namespace troupe::detail
