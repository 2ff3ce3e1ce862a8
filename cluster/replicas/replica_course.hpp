// The phases of a replica from one life to the next, and when they change by themselves. No actor, no clock.
//
// A life starts when all workers are there, runs when all of them are ready, and ends when one fails or is lost. After
// a failure the next life has to wait, longer each time, until the replica has run for a minute.
#pragma once
#include <cstdint>
#include <set>
#include <string>
#include <string_view>

#include "base/clock.hpp"
#include "cluster/cluster_ids.hpp"

namespace troupe {

/// So long a stage may take to start, since it reads its weights. Requests that were accepted wait as long for a
/// replica.
inline constexpr duration longest_stage_start = std::chrono::minutes(10);

class replica_course {
 public:
  enum class phase : std::uint8_t { vacant, starting, running, waiting };  ///< waiting: for its next try
  enum class due : std::uint8_t { nothing, next_life, failure };           ///< failure: it took too long to start

  void start(std::set<seat> seats, instant now);
  /// The worker of a seat is ready. Returns whether it was the last one, so that the life runs now.
  bool note_ready(seat whose, instant now);
  /// Returns whether the life was running.
  bool stop(instant now);
  /// To be called after stop(), if the life ended by a failure.
  void note_failure(std::string why);
  due look(instant now, duration longest_start);
  /// Of a life that starts: a seat that is not ready. Where several are not, each is it for two failures in a row: one
  /// that hangs may keep others waiting.
  seat missing_seat() const;

  phase current() const { return phase_; }
  bool is_running() const { return phase_ == phase::running; }
  bool is_alive() const { return is_running() || phase_ == phase::starting; }
  int failures() const { return failures_; }               ///< in a row
  const std::string& problem() const { return problem_; }  ///< the last failure; empty while it runs

 private:
  void enter(phase next, instant now);

  phase phase_ = phase::vacant;
  instant since_;
  std::set<seat> missing_;  ///< not ready yet
  int failures_ = 0;
  std::string problem_;
};

std::string_view name_of(replica_course::phase phase);

}  // namespace troupe
