#pragma once
#include <algorithm>
#include <initializer_list>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "actors/messages.hpp"
#include "actors/replicas/scheduler_meter.hpp"
#include "cluster/routing/routing.hpp"
#include "model/engine/scheduling/scheduler_counters.hpp"

namespace troupe {

/// What a scheduler says of its replica.
struct replica_figures {
  bool ready = false;
  std::size_t stages = 0;  ///< of its newest life
  epoch_id epoch;
  replica_load load;
  scheduler_counters scheduling;  ///< in all lives
  scheduler_meter::figures meter;
  std::int32_t max_adapters = 0;                                                   ///< that run at a time
  std::vector<std::string> resident_adapters, running_adapters, waiting_adapters;  ///< full names; only some, if many
};

/// How far a fine-tune is.
struct fine_tune_figures {
  std::string adapter;         ///< the name to publish as
  training_progress progress;  ///< the newest report, without points
  std::optional<training_point> last_step, last_validation;
  bool is_publishing = false;
  std::string trainers;  ///< names of those who work on it; may be empty
  double share = 1;      ///< of the time that they may use
};

/// Where actors post their state for others, so that nobody has to wait for a busy actor. Thread-safe.
class status_board {
 public:
  // What people and clients are shown (`troupe status`, the HTTP page): the newest JSON of each section.
  void post(const std::string& section, std::string json) {
    const std::lock_guard lock(mutex_);
    sections_[section] = std::move(json);
  }
  void remove(const std::string& section) {
    const std::lock_guard lock(mutex_);
    sections_.erase(section);
  }
  /// Empty if nobody has posted it.
  std::string read(const std::string& section) const {
    const std::lock_guard lock(mutex_);
    const auto found = sections_.find(section);
    return found == sections_.end() ? std::string() : found->second;
  }
  /// The sections as members of a JSON object: of one that nobody has posted, an empty list. After them come how many
  /// `adapters` and `jobs` leave out, what is wrong with the journal and why the workers cannot hold the model, if
  /// these are posted.
  std::string json_of(std::initializer_list<const char*> sections) const;

  // What other actors work with.
  void post_replica(replica_id replica, replica_figures figures) {
    const std::lock_guard lock(mutex_);
    replicas_[replica] = std::move(figures);
  }
  std::map<replica_id, replica_figures> replicas() const {
    const std::lock_guard lock(mutex_);
    return replicas_;
  }
  std::size_t ready_replicas() const {
    const std::lock_guard lock(mutex_);
    return static_cast<std::size_t>(
        std::ranges::count_if(replicas_, [](const auto& each) { return each.second.ready; }));
  }
  void post_fine_tunes(std::map<std::string, fine_tune_figures> by_job) {
    const std::lock_guard lock(mutex_);
    fine_tunes_ = std::move(by_job);
  }
  std::map<std::string, fine_tune_figures> fine_tunes() const {
    const std::lock_guard lock(mutex_);
    return fine_tunes_;
  }

 private:
  mutable std::mutex mutex_;
  std::map<std::string, std::string> sections_;
  std::map<replica_id, replica_figures> replicas_;
  std::map<std::string, fine_tune_figures> fine_tunes_;  ///< by job id
};

}  // namespace troupe
