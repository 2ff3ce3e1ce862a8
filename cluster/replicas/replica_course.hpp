// Where a replica is between one life and the next, and when it is time for something else. No actor, no clock.
//
// A life starts when all workers are there, runs when all of them are ready, and ends when one fails or is lost. After
// a failure the next life waits, longer each time; a replica that has run for a minute has none behind it.
#pragma once
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "base/clock.hpp"

namespace troupe {

class replica_course {
 public:
  enum class phase : std::uint8_t { vacant, starting, running, waiting };  ///< waiting: for its next try
  enum class due : std::uint8_t { nothing, next_life, failure };           ///< failure: it took too long to start
  using place = std::pair<std::uint32_t, std::uint32_t>;                   ///< a stage, and a rank in it

  void start(std::set<place> places, instant now);
  /// Whether the life runs from now on.
  bool note_ready(place which, instant now);
  /// Whether it was running.
  bool stop(instant now);
  /// Of one that was stopped.
  void note_failure(std::string why);
  due look(instant now, duration longest_start);

  phase current() const { return phase_; }
  bool is_running() const { return phase_ == phase::running; }
  bool is_alive() const { return is_running() || phase_ == phase::starting; }
  int failures() const { return failures_; }               ///< one after the other
  const std::string& problem() const { return problem_; }  ///< the last of them; empty while it runs

 private:
  void enter(phase next, instant now);

  phase phase_ = phase::vacant;
  instant since_;
  std::set<place> missing_;  ///< not ready yet
  int failures_ = 0;
  std::string problem_;
};

std::string_view name_of(replica_course::phase phase);

}  // namespace troupe
