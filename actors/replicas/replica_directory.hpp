#pragma once
#include <mutex>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "actors/interfaces.hpp"

namespace troupe {

/// Which scheduler belongs to which replica, who the workers are, and which links are those of members. The supervisor
/// writes it; it is read where workers' messages arrive. Thread-safe.
class replica_directory {
 public:
  void set(replica_id replica, scheduler_actor scheduler) {
    const std::lock_guard lock(mutex_);
    schedulers_[replica] = std::move(scheduler);
  }
  /// Tells the scheduler of the message's replica, if there is one.
  template <message M>
  void tell_scheduler(M what) const {
    scheduler_actor scheduler;
    {
      const std::lock_guard lock(mutex_);
      if (const auto found = schedulers_.find(what.life.replica); found != schedulers_.end()) scheduler = found->second;
    }
    tell(scheduler, std::move(what));
  }
  /// For tests.
  std::vector<scheduler_actor> all() const {
    const std::lock_guard lock(mutex_);
    std::vector<scheduler_actor> found;
    for (const auto& [replica, scheduler] : schedulers_) found.push_back(scheduler);
    return found;
  }
  void admit(link_id link) {
    const std::lock_guard lock(mutex_);
    members_.insert(link);
  }
  void expel(link_id link) {
    const std::lock_guard lock(mutex_);
    members_.erase(link);
  }
  bool is_member(link_id link) const {
    const std::lock_guard lock(mutex_);
    return members_.contains(link);
  }
  void set_worker(const std::string& name, worker_actor worker) {
    const std::lock_guard lock(mutex_);
    workers_[name] = std::move(worker);
  }
  void drop_worker(const std::string& name) {
    const std::lock_guard lock(mutex_);
    workers_.erase(name);
  }
  /// All workers, also those that hold no layers.
  std::vector<worker_actor> workers() const {
    const std::lock_guard lock(mutex_);
    std::vector<worker_actor> found;
    for (const auto& [name, worker] : workers_) found.push_back(worker);
    return found;
  }
  void clear() {
    const std::lock_guard lock(mutex_);
    schedulers_.clear();
    workers_.clear();
  }

 private:
  mutable std::mutex mutex_;
  std::unordered_map<replica_id, scheduler_actor> schedulers_;
  std::unordered_map<std::string, worker_actor> workers_;
  std::unordered_set<link_id> members_;
};

}  // namespace troupe
