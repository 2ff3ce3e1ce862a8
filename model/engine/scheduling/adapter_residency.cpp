#include "model/engine/scheduling/adapter_residency.hpp"

#include <algorithm>
#include <cassert>

namespace troupe {

std::optional<adapter_too_large> adapter_residency::declare(adapter_version version, std::int64_t bytes) {
  assert(version != no_adapter && bytes > 0);
  if (bytes > options_.bytes) return adapter_too_large{bytes, options_.bytes};
  adapter& entry = adapters_[version];
  if (entry.where == place::failed) entry = {};
  if (entry.where == place::away) entry.bytes = bytes;
  return std::nullopt;
}

bool adapter_residency::is_ready(adapter_version version) {
  const auto found = adapters_.find(version);
  if (found == adapters_.end()) return false;
  adapter& entry = found->second;
  if (entry.where == place::away) {
    entry.where = place::in_line;
    entry.asked = turn_;
    line_.push_back(version);
  }
  if (entry.where != place::resident || entry.closed) return false;
  entry.asked = turn_;
  entry.last_used = ++askings_;
  return true;
}

const adapter_residency::moves& adapter_residency::turn(const test& is_pinned, const test& is_wanted) {
  ++turn_;
  moves_.drop.clear();
  moves_.load.clear();
  note_pinned(is_pinned);
  if (is_wanted) {
    leave_line(is_wanted);
    forget_unwanted(is_wanted);
  }
  serve_line();
  close_for_overdue();
  return moves_;
}

void adapter_residency::note_pinned(const test& is_pinned) {
  for (const adapter_version version : residents_) {
    adapter& entry = adapters_.at(version);
    entry.pinned = is_pinned(version);
    entry.has_run |= entry.pinned;
  }
}

/// Their sequences were cancelled: nobody must wait for them.
void adapter_residency::leave_line(const test& is_wanted) {
  line_.remove_if([&](adapter_version version) {
    if (is_wanted(version)) return false;
    adapters_.at(version).where = place::away;
    return true;
  });
}

/// Those that are not here: who wants one again declares it.
void adapter_residency::forget_unwanted(const test& is_wanted) {
  if (adapters_.size() <= many_) return;
  std::erase_if(adapters_, [&](const auto& item) {
    const auto& [version, entry] = item;
    return (entry.where == place::away || entry.where == place::failed) && !is_wanted(version);
  });
  many_ = std::max<std::size_t>(1024, 2 * adapters_.size());
}

void adapter_residency::serve_line() {
  while (!line_.empty()) {
    const adapter_version version = line_.front();
    adapter& wanted = adapters_.at(version);
    if (!make_room_for(wanted)) return;
    line_.pop_front();
    wanted.where = place::loading;
    loading_bytes_ += wanted.bytes;
    ++loading_;
    moves_.load.push_back(version);
  }
}

/// Drops adapters only if that makes room enough, so that none goes in vain.
bool adapter_residency::make_room_for(const adapter& wanted) {
  const bool overdue = is_overdue(wanted);
  const auto allowed = [&](const adapter& resident) { return may_go(resident, overdue); };
  std::int64_t possible = room();
  for (const adapter_version version : residents_)
    if (const adapter& resident = adapters_.at(version); allowed(resident)) possible += resident.bytes;
  // An overdue adapter gets every bit of room, even if it is not enough yet: nobody else may fill it again.
  if (possible < wanted.bytes && !overdue) return false;
  while (room() < wanted.bytes) {
    const auto victim = least_recently_used(allowed);
    if (!victim) return false;
    drop(*victim);
  }
  return true;
}

bool adapter_residency::may_go(const adapter& resident, bool overdue) const {
  if (resident.pinned) return false;
  const bool fresh = !resident.has_run && turn_ - resident.came < options_.patience;
  const bool about_to_start = resident.asked + 1 == turn_ && !overdue;
  return resident.closed || (!fresh && !about_to_start);
}

void adapter_residency::drop(adapter_version version) {
  adapter& entry = adapters_.at(version);
  entry.where = place::away;
  entry.closed = entry.has_run = false;
  resident_bytes_ -= entry.bytes;
  residents_.erase(std::find(residents_.begin(), residents_.end(), version));
  moves_.drop.push_back(version);
}

/// They are chosen anew in every turn, and are mostly the same: a closed adapter is not used, so it stays the least
/// recently used.
void adapter_residency::close_for_overdue() {
  for (const adapter_version version : residents_) adapters_.at(version).closed = false;
  const std::int64_t owed = bytes_owed();
  for (std::int64_t coming = room(); coming < owed;) {
    const auto next = least_recently_used([](const adapter& entry) { return entry.pinned && !entry.closed; });
    if (!next) return;
    adapter& entry = adapters_.at(*next);
    entry.closed = true;
    coming += entry.bytes;
  }
}

/// Bytes that the overdue adapters at the front of the line need, within the share that may be closed at a time.
std::int64_t adapter_residency::bytes_owed() const {
  std::int64_t owed = 0;
  for (const adapter_version version : line_) {
    const adapter& waiting = adapters_.at(version);
    if (!is_overdue(waiting) || (owed > 0 && owed + waiting.bytes > options_.bytes / 4)) break;
    owed += waiting.bytes;
  }
  return owed;
}

template <class Allowed>
std::optional<adapter_version> adapter_residency::least_recently_used(Allowed&& allowed) const {
  std::optional<adapter_version> least;
  for (const adapter_version version : residents_) {
    const adapter& entry = adapters_.at(version);
    if (allowed(entry) && (!least || entry.last_used < adapters_.at(*least).last_used)) least = version;
  }
  return least;
}

void adapter_residency::loaded(adapter_version version) {
  adapter& entry = adapters_.at(version);
  assert(entry.where == place::loading);
  entry.where = place::resident;
  entry.pinned = entry.closed = entry.has_run = false;
  entry.came = turn_;
  entry.last_used = ++askings_;
  loading_bytes_ -= entry.bytes;
  resident_bytes_ += entry.bytes;
  residents_.push_back(version);
  --loading_;
  ++loads_;
}

void adapter_residency::failed(adapter_version version, std::string why) {
  adapter& entry = adapters_.at(version);
  assert(entry.where == place::loading);
  entry.where = place::failed;
  entry.why = std::move(why);
  loading_bytes_ -= entry.bytes;
  --loading_;
}

const std::string* adapter_residency::failure_of(adapter_version version) const {
  const auto found = adapters_.find(version);
  return found != adapters_.end() && found->second.where == place::failed ? &found->second.why : nullptr;
}

adapter_residency::statistics adapter_residency::stats() const {
  return {.resident_bytes = resident_bytes_,
          .loading_bytes = loading_bytes_,
          .loading = loading_,
          .waiting = line_.size(),
          .loads = loads_};
}

}  // namespace troupe
