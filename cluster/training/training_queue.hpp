// Which trainers work on which fine-tune. No actor, no clock.
//
// Goals: a trainer has one lease at a time, and each lease its own number; whoever speaks of another one is not heard.
// The oldest job goes first, and back to the trainers that had it where those are free: they have the checkpoint. A job
// takes as many trainers as it asks for and can have; it never waits for more, since what comes out is the same. A job
// that loses its trainers again and again without getting any further is given up.
#pragma once
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

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
  /// The leases of one job: the first is in charge.
  using group = std::vector<lease>;
  /// A group that has lost one of its trainers, or all: its leases have ended.
  struct loss {
    group ended;
    std::string given_up;  ///< the job, where it has to be: it stays until it is removed
  };

  explicit training_queue(options chosen) : options_(chosen), last_lease_(chosen.leases_from) {}

  /// At the end of the queue; known jobs stay where they are. `trainers`: as many as it can use.
  void add(const std::string& job, bool paused, int trainers = 1);
  bool knows(const std::string& job) const { return find(job) != nullptr; }
  /// Its leases end, if it has some.
  group pause(const std::string& job);
  void resume(const std::string& job);
  /// The job is over: what were its leases?
  group remove(const std::string& job);

  /// `reach`: those of the same can meet.
  void trainer_joined(const std::string& name, const std::string& reach = {});
  /// What it was working on waits again.
  loss trainer_lost(const std::string& name);
  /// Its trainers have lost each other: the job waits again.
  loss fell_apart(std::uint64_t lease);
  /// A trainer stopped by itself, in order: the job waits again.
  group give_back(std::uint64_t lease);
  /// A trainer has got further with it.
  void note_progress(std::uint64_t lease);
  /// It has been trained: the one in charge is enough from now on. The others' leases end.
  group finish(std::uint64_t lease);

  /// The next job for free trainers, if there are both.
  group assign();
  /// To be called after assign(). If a job could have more trainers now, its leases end, so that it is assigned anew.
  group widen();
  group leases_of(const std::string& job) const;
  std::optional<lease> find_lease(std::uint64_t number) const;
  std::size_t trainers() const { return trainers_.size(); }

 private:
  struct entry {
    std::string job;
    bool paused = false;
    int wanted = 1;  ///< trainers
    group members;   ///< that have it, or had it last
    int deaths = 0;

    bool is_leased() const { return !members.empty() && members.front().number != 0; }
  };
  struct trainer {
    std::string reach;
    std::uint64_t lease = 0;  ///< 0: free
  };
  const entry* find(const std::string& job) const;
  entry* find(const std::string& job);
  entry* find_by_lease(std::uint64_t number);
  std::vector<std::string> candidates(const entry& job) const;
  group end_leases(entry& job, std::size_t from = 0);
  loss lose(entry& job);

  options options_;
  std::deque<entry> jobs_;  ///< oldest first
  std::map<std::string, trainer> trainers_;
  std::uint64_t last_lease_ = 0;
};

}  // namespace troupe
