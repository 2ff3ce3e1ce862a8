#include "cluster/routing/routing.hpp"

#include <algorithm>
#include <cmath>

#include "base/to_size.hpp"

namespace troupe {
namespace {

constexpr std::size_t max_unseen = 1 << 16;
constexpr std::size_t max_prefixes = 1 << 16;  // remembered for each replica
constexpr std::size_t reports_of_a_while = 5;  // half a second of a busy replica
constexpr double batch_share = 0.75;           // of a queue that batch requests may fill
constexpr std::uint64_t running_cost = 24;     // tokens that a running sequence counts for
constexpr std::uint64_t waiting_cost = 256;    // tokens that a waiting sequence counts for
constexpr std::uint64_t adapter_cost = 512;    // tokens that the loading of an adapter counts for

}  // namespace

void routing_policy::add_replica(replica_id id) {
  replicas_.try_emplace(id);
}

void routing_policy::set_ready(replica_id id, bool ready) {
  const auto found = replicas_.find(id);
  if (found == replicas_.end()) return;
  found->second.is_ready = ready;
  if (!ready) found->second.prefixes.clear();
}

void routing_policy::update(replica_id id, replica_load load) {
  const auto found = replicas_.find(id);
  if (found == replicas_.end()) return;
  replica& where = found->second;
  while (where.unseen.size() > where.sent - load.received) drop_oldest_unseen(where);
  where.prefixes.set_capacity(load.reuses_prefixes ? std::min<std::size_t>(max_prefixes, load.blocks) : 0);
  where.reports_waiting = load.waiting > 0 ? where.reports_waiting + 1 : 0;
  where.load = std::move(load);
  where.ended = 0;
}

std::optional<replica_id> routing_policy::choose(const request_view& request) const {
  return best_of(request, [](replica_id, const replica&) { return true; });
}

std::optional<replica_id> routing_policy::choose_after(replica_id from, const request_view& request) const {
  const auto before = replicas_.find(from);
  if (before == replicas_.end() || !before->second.is_ready) return choose(request);
  const auto other =
      best_of(request, [&](replica_id id, const replica& where) { return id != from && room_left(where) > 0; });
  return other ? other : choose(request);
}

/// The best of those that `allows` takes.
template <class Allows>
std::optional<replica_id> routing_policy::best_of(const request_view& request, Allows allows) const {
  std::optional<replica_id> best;
  std::uint64_t lowest = 0;
  const bool is_picky = is_loadable(request.adapter);
  for (const auto& [id, where] : replicas_) {
    if (!where.is_ready || is_full(where, request.is_batch) || !allows(id, where)) continue;
    if (is_picky && !may_load(where, request.adapter)) continue;
    const std::uint64_t work = score(where, request);
    if (best && work >= lowest) continue;
    best = id;
    lowest = work;
  }
  return best;
}

void routing_policy::sent(replica_id id, const request_view& request) {
  const auto found = replicas_.find(id);
  if (found == replicas_.end()) return;
  replica& where = found->second;
  const std::uint64_t tokens = tokens_to_compute(where, request) + running_cost;
  where.prefixes.touch(request.prefix);
  ++where.sent;
  where.unseen.push_back({tokens, request.adapter});
  where.unseen_tokens += tokens;
  if (where.unseen.size() > max_unseen) drop_oldest_unseen(where);
}

void routing_policy::ended(replica_id id, std::size_t requests) {
  if (const auto found = replicas_.find(id); found != replicas_.end()) found->second.ended += requests;
}

std::size_t routing_policy::sequences_to_move(replica_id from) {
  const auto found = replicas_.find(from);
  if (found == replicas_.end() || found->second.reports_waiting < reports_of_a_while) return 0;
  found->second.reports_waiting = 0;
  std::size_t room = 0;
  for (const auto& [id, where] : replicas_)
    if (id != from) room += room_left(where);
  return std::min<std::size_t>(room, found->second.load.waiting);
}

/// Where nobody waits and memory is left: where it is short, those that come would push each other out. Nor where an
/// adapter cannot be loaded: it may be that of those who wait, who would lose their turn for nothing.
std::size_t routing_policy::room_left(const replica& where) {
  const bool has_room = where.is_ready && where.load.waiting == 0 && where.load.unloadable.empty() &&
                        where.load.free_blocks >= where.load.blocks / 2;
  return has_room ? where.load.max_sequences - std::min<std::size_t>(where.load.max_sequences, in_system(where)) : 0;
}

std::size_t routing_policy::ready() const {
  return to_size(
      std::count_if(replicas_.begin(), replicas_.end(), [](const auto& each) { return each.second.is_ready; }));
}

bool routing_policy::is_loadable(adapter_version adapter) const {
  return std::any_of(replicas_.begin(), replicas_.end(),
                     [&](const auto& each) { return each.second.is_ready && may_load(each.second, adapter); });
}

bool routing_policy::is_loadable_everywhere(adapter_version adapter) const {
  return std::all_of(replicas_.begin(), replicas_.end(),
                     [&](const auto& each) { return !each.second.is_ready || may_load(each.second, adapter); });
}

/// The requests that are there now, as far as is known: short ones come and go between two reports.
std::size_t routing_policy::in_system(const replica& where) {
  const std::size_t came = std::size_t{where.load.running} + where.load.waiting + where.unseen.size();
  return came - std::min(came, where.ended);
}

bool routing_policy::is_full(const replica& where, bool is_batch) {
  const double share = is_batch ? batch_share : 1.0;
  const auto waiting = static_cast<std::size_t>(std::floor(where.load.max_waiting * share));
  return in_system(where) >= where.load.max_sequences + waiting;
}

std::uint64_t routing_policy::work_of(const replica& where) {
  return where.load.running * running_cost + where.load.waiting * waiting_cost + where.load.queued_tokens +
         where.unseen_tokens;
}

/// Tokens of the prompt that are probably not cached there.
std::uint64_t routing_policy::tokens_to_compute(const replica& where, const request_view& request) {
  const std::uint64_t cached = where.prefixes.match(request.prefix) * block_tokens;
  return request.prompt_tokens - std::min(request.prompt_tokens, cached);
}

std::uint64_t routing_policy::score(const replica& where, const request_view& request) {
  const std::uint64_t tokens = tokens_to_compute(where, request);
  std::uint64_t work = work_of(where) + tokens;
  if (!has_adapter(where, request.adapter)) work += adapter_cost;
  // Missing blocks must be taken from another sequence, whose tokens are then computed again.
  const std::uint64_t needed = tokens / block_tokens + 1;
  if (needed > where.load.free_blocks) work += (needed - where.load.free_blocks) * block_tokens;
  return work;
}

bool routing_policy::has_adapter(const replica& where, adapter_version adapter) {
  if (adapter == adapter_version{}) return true;
  const auto& resident = where.load.adapters;
  if (std::find(resident.begin(), resident.end(), adapter) != resident.end()) return true;
  return std::any_of(where.unseen.begin(), where.unseen.end(), [&](auto& each) { return each.adapter == adapter; });
}

bool routing_policy::may_load(const replica& where, adapter_version adapter) {
  const auto& failed = where.load.unloadable;
  return std::find(failed.begin(), failed.end(), adapter) == failed.end();
}

void routing_policy::drop_oldest_unseen(replica& where) {
  where.unseen_tokens -= where.unseen.front().tokens;
  where.unseen.pop_front();
}

}  // namespace troupe
