#include "cluster/training_queue.hpp"

#include <algorithm>
#include <utility>

namespace troupe {

const training_queue::entry* training_queue::find(const std::string& job) const {
  const auto found = std::find_if(jobs_.begin(), jobs_.end(), [&](const entry& each) { return each.job == job; });
  return found == jobs_.end() ? nullptr : &*found;
}

training_queue::entry* training_queue::find(const std::string& job) {
  return const_cast<entry*>(std::as_const(*this).find(job));
}

training_queue::entry* training_queue::find_by_lease(std::uint64_t number) {
  const auto found = std::find_if(jobs_.begin(), jobs_.end(), [&](const entry& each) { return each.lease == number; });
  return number == 0 || found == jobs_.end() ? nullptr : &*found;
}

void training_queue::add(const std::string& job, bool paused) {
  if (!knows(job)) jobs_.push_back({job, paused, 0, {}, 0});
}

/// The trainer is free at once: it hears of the end before it hears of anything else.
std::optional<training_queue::lease> training_queue::end_lease(entry& of) {
  if (of.lease == 0) return {};
  const lease ended = lease_of(of);
  if (const auto found = trainers_.find(of.trainer); found != trainers_.end() && found->second == of.lease)
    found->second = 0;
  of.lease = 0;
  return ended;
}

std::optional<training_queue::lease> training_queue::pause(const std::string& job) {
  entry* found = find(job);
  if (!found) return {};
  found->paused = true;
  return end_lease(*found);
}

void training_queue::resume(const std::string& job) {
  if (entry* found = find(job)) found->paused = false, found->deaths = 0;
}

std::optional<training_queue::lease> training_queue::remove(const std::string& job) {
  entry* found = find(job);
  if (!found) return {};
  const auto ended = end_lease(*found);
  std::erase_if(jobs_, [&](const entry& each) { return each.job == job; });
  return ended;
}

void training_queue::trainer_joined(const std::string& name) {
  trainers_[name] = 0;
}

std::optional<std::string> training_queue::trainer_lost(const std::string& name) {
  const auto gone = trainers_.extract(name);
  entry* had = gone ? find_by_lease(gone.mapped()) : nullptr;
  if (!had) return {};
  had->lease = 0;
  if (++had->deaths < options_.most_deaths) return {};
  had->paused = true;
  return had->job;
}

void training_queue::give_back(std::uint64_t number) {
  if (entry* found = find_by_lease(number)) (void)end_lease(*found);
}

void training_queue::note_progress(std::uint64_t number) {
  if (entry* found = find_by_lease(number)) found->deaths = 0;
}

std::optional<training_queue::lease> training_queue::assign() {
  const auto is_free = [&](const std::string& name) {
    const auto found = trainers_.find(name);
    return found != trainers_.end() && found->second == 0;
  };
  const auto any = std::find_if(trainers_.begin(), trainers_.end(), [](const auto& each) { return each.second == 0; });
  const auto waits = [](const entry& each) { return !each.paused && each.lease == 0; };
  const auto job = std::find_if(jobs_.begin(), jobs_.end(), waits);
  if (any == trainers_.end() || job == jobs_.end()) return {};
  if (!is_free(job->trainer)) job->trainer = any->first;
  job->lease = trainers_[job->trainer] = ++last_lease_;
  return lease_of(*job);
}

std::optional<training_queue::lease> training_queue::lease_of(const std::string& job) const {
  const entry* found = find(job);
  if (!found || found->lease == 0) return {};
  return lease_of(*found);
}

std::optional<training_queue::lease> training_queue::find_lease(std::uint64_t number) const {
  const auto found = std::find_if(jobs_.begin(), jobs_.end(), [&](const entry& each) { return each.lease == number; });
  if (number == 0 || found == jobs_.end()) return {};
  return lease_of(*found);
}

}  // namespace troupe
