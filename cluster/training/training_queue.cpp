#include "cluster/training/training_queue.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

#include "base/to_size.hpp"

namespace troupe {

const training_queue::entry* training_queue::find(const std::string& job) const {
  const auto found = std::find_if(jobs_.begin(), jobs_.end(), [&](const entry& each) { return each.job == job; });
  return found == jobs_.end() ? nullptr : &*found;
}

training_queue::entry* training_queue::find(const std::string& job) {
  return const_cast<entry*>(std::as_const(*this).find(job));
}

training_queue::entry* training_queue::find_by_lease(std::uint64_t number) {
  const auto lease = find_lease(number);
  return lease ? find(lease->job) : nullptr;
}

void training_queue::add(const std::string& job, bool paused, int trainers, const std::string& owner) {
  if (!find(job)) jobs_.push_back({.job = job, .paused = paused, .wanted = trainers, .owner = owner});
}

void training_queue::note_holder(const std::string& job, const std::string& trainer) {
  entry* found = find(job);
  if (!found) return;
  found->has_begun = true;
  found->holders = {trainer};
}

/// The trainers are free at once, since they hear of this before they hear of anything else.
training_queue::group training_queue::end_leases(entry& job, std::size_t from) {
  if (!job.is_leased()) return {};
  const group ended(job.members.begin() + static_cast<std::ptrdiff_t>(std::min(from, job.members.size())),
                    job.members.end());
  for (std::size_t i = from; i < job.members.size(); ++i) {
    const auto found = trainers_.find(job.members[i].trainer);
    if (found != trainers_.end() && found->second.lease == job.members[i].number) found->second.lease = 0;
    job.members[i].number = 0;
  }
  return ended;
}

training_queue::group training_queue::pause(const std::string& job) {
  entry* found = find(job);
  if (!found) return {};
  found->paused = true;
  return end_leases(*found);
}

void training_queue::resume(const std::string& job) {
  if (entry* found = find(job)) {
    found->paused = false;
    found->deaths = 0;
  }
}

void training_queue::remove(const std::string& job) {
  if (entry* found = find(job)) end_leases(*found);
  std::erase_if(jobs_, [&](const entry& each) { return each.job == job; });
  std::erase_if(begun_, [&](const auto& each) {
    return std::ranges::none_of(jobs_, [&](const entry& left) { return left.owner == each.first; });
  });
}

void training_queue::trainer_joined(const std::string& name, const std::string& reach) {
  trainers_[name] = {reach, 0};
}

training_queue::loss training_queue::lose(entry& job) {
  const bool was_shared = job.members.size() > 1;
  loss lost{end_leases(job), {}};
  if (++job.deaths < options_.most_deaths) return lost;
  job.deaths = 0;
  job.wanted = 1;
  job.paused = !was_shared;
  if (!was_shared) lost.given_up = job.job;
  return lost;
}

training_queue::loss training_queue::trainer_lost(const std::string& name) {
  const auto gone = trainers_.extract(name);
  entry* had = gone ? find_by_lease(gone.mapped().lease) : nullptr;
  return had ? lose(*had) : loss{};
}

training_queue::group training_queue::trainer_left(const std::string& name) {
  const auto gone = trainers_.extract(name);
  return gone ? give_back(gone.mapped().lease) : group{};
}

training_queue::group training_queue::fell_apart(std::uint64_t number) {
  entry* had = find_by_lease(number);
  return had ? lose(*had).ended : group{};
}

training_queue::group training_queue::give_back(std::uint64_t number) {
  entry* found = find_by_lease(number);
  return found ? end_leases(*found) : group{};
}

void training_queue::note_progress(std::uint64_t number, std::int64_t step) {
  entry* found = find_by_lease(number);
  if (!found || step <= 0) return;
  found->holders.clear();
  for (const lease& member : found->members) found->holders.push_back(member.trainer);
  if (step <= found->furthest) return;
  found->furthest = step;
  found->deaths = 0;
}

training_queue::group training_queue::finish(std::uint64_t number) {
  entry* found = find_by_lease(number);
  if (!found) return {};
  found->wanted = 1;
  const group ended = end_leases(*found, 1);
  found->members.resize(1);
  return ended;
}

/// Whether a trainer has no job, or this one.
bool training_queue::is_free_for(const entry& job, const trainer& who) {
  return who.lease == 0 || std::any_of(job.members.begin(), job.members.end(),
                                       [&](const lease& member) { return member.number == who.lease; });
}

/// Trainers that a job could have: free ones and its own that can meet, those that have its steps or had it last first.
std::vector<std::string> training_queue::free_for(const entry& job) const {
  std::vector<std::string> in_turn = job.holders;
  for (const lease& member : job.members) in_turn.push_back(member.trainer);
  for (const auto& [name, trainer] : trainers_) in_turn.push_back(name);
  std::vector<std::string> found;
  for (const std::string& name : in_turn) {
    if (found.size() >= to_size(job.wanted)) break;
    const auto at = trainers_.find(name);
    const bool is_found = std::find(found.begin(), found.end(), name) != found.end();
    if (is_found || at == trainers_.end() || !is_free_for(job, at->second)) continue;
    if (found.empty() || trainers_.at(found.front()).reach == at->second.reach) found.push_back(name);
  }
  return found;
}

/// One at which its trainers die again and again may do better elsewhere.
bool training_queue::awaits_holder(const entry& job, const std::vector<std::string>& free) const {
  if (job.holders.empty() || job.deaths > options_.most_deaths / 2) return false;
  return std::find_first_of(free.begin(), free.end(), job.holders.begin(), job.holders.end()) == free.end();
}

std::vector<std::string> training_queue::candidates(const entry& job) const {
  std::vector<std::string> free = free_for(job);
  if (awaits_holder(job, free)) free.clear();
  return free;
}

std::vector<training_queue::awaiting> training_queue::awaited() const {
  std::vector<awaiting> found;
  for (const entry& each : jobs_) {
    if (each.paused || each.is_leased()) continue;
    const auto free = free_for(each);
    if (!free.empty() && awaits_holder(each, free)) found.push_back({each.job, each.holders.front()});
  }
  return found;
}

void training_queue::wait_no_longer(const std::string& job) {
  if (entry* found = find(job)) found->holders.clear();
}

/// Of those that wait and can have a trainer; nullptr if none can.
training_queue::entry* training_queue::next_job() {
  std::map<std::string, std::size_t> leased;  // jobs, by their owners
  for (const entry& each : jobs_) leased[each.owner] += each.is_leased() ? 1 : 0;
  const auto turn_of = [&](const entry& each) {
    if (each.has_begun) return std::tuple(false, std::size_t{0}, std::uint64_t{0});
    const auto known = begun_.find(each.owner);
    return std::tuple(true, leased.at(each.owner), known == begun_.end() ? 0 : known->second);
  };
  entry* next = nullptr;
  for (entry& each : jobs_)
    if (!each.paused && !each.is_leased() && (!next || turn_of(each) < turn_of(*next)) && !candidates(each).empty())
      next = &each;
  return next;
}

training_queue::group training_queue::assign() {
  entry* job = next_job();
  if (!job) return {};
  const auto chosen = candidates(*job);
  if (!job->has_begun) begun_[job->owner] = last_lease_ + 1;
  job->has_begun = true;
  job->members.clear();
  for (const std::string& name : chosen) {
    trainers_[name].lease = ++last_lease_;
    job->members.push_back({last_lease_, job->job, name});
  }
  return job->members;
}

training_queue::group training_queue::widen() {
  for (entry& each : jobs_)
    if (each.is_leased() && candidates(each).size() > each.members.size()) return end_leases(each);
  return {};
}

training_queue::group training_queue::leases_of(const std::string& job) const {
  const entry* found = find(job);
  return found && found->is_leased() ? found->members : group{};
}

std::optional<training_queue::lease> training_queue::find_lease(std::uint64_t number) const {
  if (number == 0) return {};
  for (const entry& each : jobs_)
    for (const lease& member : each.members)
      if (member.number == number) return member;
  return {};
}

}  // namespace troupe
