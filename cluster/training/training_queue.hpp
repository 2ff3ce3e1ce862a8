// Decides which trainers work on which fine-tune. No actor, no clock.
//
// Goals: a trainer has one lease at a time, and each lease has its own number, so that messages about another one can
// be ignored. Owners take turns: a job begins for the one who has fewest of them leased, and of these for the one whose
// last began longest ago; of an owner's jobs the oldest does. One that has begun goes on before others begin, with the
// trainers that had it before if they are free, since they have the checkpoint. While none of those is there it waits
// for them, until it is told not to: others would begin anew. A job takes as many trainers as it asks for and can have;
// it never waits for more, since the result is the same. Trainers that lose each other again and again without getting
// further may not reach each other: then one goes on alone. A job that loses its only trainer again and again without
// getting further waits for it no more, and then is given up.
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
    int most_deaths = 5;            ///< of trainers at one job that does not get further in between
    std::uint64_t leases_from = 0;  ///< where lease numbers begin; each head has its own
  };
  struct lease {
    std::uint64_t number = 0;
    std::string job, trainer;
  };
  /// The leases of one job: the first is in charge.
  using group = std::vector<lease>;
  /// What follows when a group has lost trainers: its leases end.
  struct loss {
    group ended;
    std::string given_up;  ///< the job, if it is given up; it stays until it is removed
  };

  explicit training_queue(options chosen) : options_(chosen), last_lease_(chosen.leases_from) {}

  /// Adds a job at the end; a known one stays where it is. `trainers`: how many it can use. `owner`: whose it is.
  void add(const std::string& job, bool paused, int trainers = 1, const std::string& owner = {});
  /// An earlier head wrote down that this trainer has made steps of the job.
  void note_holder(const std::string& job, const std::string& trainer);
  /// Returns the leases that end by this, like the functions below.
  group pause(const std::string& job);
  void resume(const std::string& job);
  /// The job is over, and so are its leases.
  void remove(const std::string& job);

  /// `reach`: trainers with the same can meet.
  void trainer_joined(const std::string& name, const std::string& reach = {});
  /// The job that it was working on waits again.
  loss trainer_lost(const std::string& name);
  /// The same for one that was told to end, which says nothing against the job.
  group trainer_left(const std::string& name);
  /// The trainers of a job have lost each other: the job waits again.
  group fell_apart(std::uint64_t lease);
  /// A trainer stopped in good order, but was not asked to: the job waits again.
  group give_back(std::uint64_t lease);
  /// The job has made so many steps. It has got further if that is more than ever before: steps since its checkpoint
  /// that are made again count for nothing.
  void note_progress(std::uint64_t lease, std::int64_t step);
  /// The job is trained: from now on it needs only the trainer in charge. The leases of the others end.
  group finish(std::uint64_t lease);

  /// The next job for free trainers, if there are both.
  group assign();
  /// Jobs that others could have now, but that wait for who has their steps; and who that is, the first in charge.
  struct awaiting {
    std::string job, holder;
  };
  std::vector<awaiting> awaited() const;
  /// Whoever is free may have the job.
  void wait_no_longer(const std::string& job);
  /// To be called after assign(). If a job could have more trainers now, its leases end, so that it is assigned anew.
  group widen();
  group leases_of(const std::string& job) const;
  std::optional<lease> find_lease(std::uint64_t number) const;
  std::size_t trainers() const { return trainers_.size(); }

 private:
  struct entry {
    std::string job;
    bool paused = false;
    int wanted = 1;                         ///< trainers
    group members = {};                     ///< that have it, or had it last
    std::vector<std::string> holders = {};  ///< trainers that have made steps of it, and not others since
    bool has_begun = false;
    int deaths = 0;  ///< since it got further
    std::int64_t furthest = 0;
    std::string owner = {};

    bool is_leased() const { return !members.empty() && members.front().number != 0; }
  };
  struct trainer {
    std::string reach;
    std::uint64_t lease = 0;  ///< 0: free
  };
  const entry* find(const std::string& job) const;
  entry* find(const std::string& job);
  entry* find_by_lease(std::uint64_t number);
  entry* next_job();
  static bool is_free_for(const entry& job, const trainer& who);
  bool awaits_holder(const entry& job, const std::vector<std::string>& free) const;
  std::vector<std::string> free_for(const entry& job) const;
  std::vector<std::string> candidates(const entry& job) const;
  group end_leases(entry& job, std::size_t from = 0);
  loss lose(entry& job);

  options options_;
  std::deque<entry> jobs_;  ///< oldest first
  std::map<std::string, trainer> trainers_;
  std::map<std::string, std::uint64_t> begun_;  ///< by the owners of jobs that wait or run: their last first lease
  std::uint64_t last_lease_ = 0;
};

}  // namespace troupe
