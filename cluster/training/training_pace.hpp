// Decides how much of the time training may use while requests run, so that they are not delayed too much.
//
// It compares the time of a step with and without training: now and then training stands still for a moment to measure
// the time without. If requests are delayed too much, training gets less of the time, else slowly more. No actor, no
// clock.
#pragma once
#include <cstdint>
#include <optional>

#include "base/clock.hpp"

namespace troupe {

class training_pace {
 public:
  /// What all replicas do together.
  struct load {
    bool busy = false;        ///< requests run
    std::uint64_t steps = 0;  ///< since they began
  };

  /// `may_delay`: by how much training may lengthen a step of requests, as a share of its time.
  explicit training_pace(double may_delay) : may_delay_(may_delay) {}

  /// The share from now on: 1 while no requests run.
  double share(const load& serving, instant now);

 private:
  enum class phase : std::uint8_t { alone, still, beside };
  void begin(phase next, const load& serving, instant now);
  bool is_over(duration meant, const load& serving, instant now) const;
  bool has_enough(const load& serving) const;
  std::optional<double> step_time(const load& serving, instant now) const;
  void learn(double beside);

  const double may_delay_;
  phase phase_ = phase::alone;
  instant since_;
  std::uint64_t steps_before_ = 0;
  std::optional<double> still_time_;  ///< seconds of a step without training
  double learned_ = 0.5;              ///< the share for training while requests run
};

}  // namespace troupe
