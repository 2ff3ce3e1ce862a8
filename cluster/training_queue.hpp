// Which trainer works on which fine-tune. No actor, no clock.
//
// Goals: a job has one lease at a time, and each lease its own number; whoever speaks of another one is not heard. The
// oldest job goes first, and back to the trainer that had it where that one is free: it has the checkpoint. A job that
// kills its trainer again and again without getting any further is given up.
#pragma once
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>

namespace troupe {

class training_queue {
 public:
  struct options {
    int most_deaths = 5;            ///< of trainers at one job, without a step between them
    std::uint64_t leases_from = 0;  ///< so that no other head had the same
  };
  struct lease {
    std::uint64_t number = 0;
    std::string job, trainer;
  };

  explicit training_queue(options chosen) : options_(chosen), last_lease_(chosen.leases_from) {}

  /// At the end of the queue; known jobs stay where they are.
  void add(const std::string& job, bool paused);
  bool knows(const std::string& job) const { return find(job) != nullptr; }
  /// Its lease ends, if it has one.
  std::optional<lease> pause(const std::string& job);
  void resume(const std::string& job);
  /// The job is over: what was its lease?
  std::optional<lease> remove(const std::string& job);

  void trainer_joined(const std::string& name);
  /// What it was working on waits again. Names the job if that has to be given up: it stays until it is removed.
  std::optional<std::string> trainer_lost(const std::string& name);
  /// It stopped by itself, in order: the job waits again.
  void give_back(std::uint64_t lease);
  /// A trainer has got further with it.
  void note_progress(std::uint64_t lease);

  /// The next job for the next free trainer, if there are both.
  std::optional<lease> assign();
  std::optional<lease> lease_of(const std::string& job) const;
  std::optional<lease> find_lease(std::uint64_t number) const;
  std::size_t trainers() const { return trainers_.size(); }

 private:
  struct entry {
    std::string job;
    bool paused = false;
    std::uint64_t lease = 0;  ///< 0: none
    std::string trainer;      ///< that has it, or had it last
    int deaths = 0;
  };
  const entry* find(const std::string& job) const;
  entry* find(const std::string& job);
  entry* find_by_lease(std::uint64_t number);
  lease lease_of(const entry& of) const { return {of.lease, of.job, of.trainer}; }
  std::optional<lease> end_lease(entry& of);

  options options_;
  std::deque<entry> jobs_;                         ///< oldest first
  std::map<std::string, std::uint64_t> trainers_;  ///< and the lease that each has, or 0
  std::uint64_t last_lease_ = 0;
};

}  // namespace troupe
