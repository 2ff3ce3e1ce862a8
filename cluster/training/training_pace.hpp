// How much of the time training may use while requests run, so that they lose no more than they may.
//
// It compares the time of a step with training on and off: now and then training stands still for a moment, and what
// steps take then is what they would take. Where requests lose too much, training gets less; else slowly more. No clock
// of its own, no actor.
#pragma once
#include <cstdint>
#include <optional>

#include "base/clock.hpp"

namespace troupe {

class training_pace {
 public:
  struct options {
    double may_delay = 0.1;                              ///< share of a step's time
    double least = 0.02, first = 0.5;                    ///< shares of the time
    duration still = std::chrono::milliseconds(1000);    ///< how long training stands still to be compared with
    duration between = std::chrono::milliseconds(9000);  ///< how long it runs until the next time
  };
  /// What the replicas have done, all together, since they began.
  struct load {
    bool busy = false;  ///< requests run
    std::uint64_t steps = 0;
  };

  explicit training_pace(options chosen) : options_(chosen), learned_(chosen.first) {}

  /// The share from now on: 1 while no requests run.
  double share(const load& serving, instant now);
  double learned() const { return learned_; }  ///< what training may use while requests run

 private:
  enum class phase : std::uint8_t { alone, still, beside };
  void begin(phase next, const load& serving, instant now);
  std::optional<double> step_time(const load& serving, instant now) const;
  void learn(double beside);

  options options_;
  phase phase_ = phase::alone;
  instant since_;
  std::uint64_t steps_before_ = 0;
  std::optional<double> still_time_;  ///< seconds of a step without training
  double learned_;
};

}  // namespace troupe
