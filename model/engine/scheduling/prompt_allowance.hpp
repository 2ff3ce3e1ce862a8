// How many tokens of prompts a step may have while somebody reads an answer along: as many as make the step some times
// as long as it would be without them. How long steps take is learned from those that were; so the same rule fits a
// small model on a processor and a large one on a GPU. No clock.
#pragma once
#include <cstdint>
#include <optional>

#include "base/clock.hpp"

namespace troupe::detail {

class prompt_allowance {
 public:
  /// `given`: that many, and nothing is learned. 0: learned, at most `most`.
  prompt_allowance(std::int32_t given, std::int32_t most);

  std::int32_t tokens() const { return static_cast<std::int32_t>(tokens_); }
  /// A step with somebody's answer and so many tokens of prompts took so long.
  void note_step(std::int64_t prompt_tokens, duration time);

 private:
  /// A line through the steps so far, by least squares. The longer ago a step was, the less it counts.
  struct step_times {
    double count = 0, x = 0, y = 0, xx = 0, xy = 0;

    void add(double tokens, double seconds);
    std::optional<double> slope() const;
  };
  double likely(double seconds, double tokens) const;

  const bool is_given_;
  const double most_;
  double tokens_;
  step_times times_;
  std::optional<double> per_token_;  ///< seconds
};

}  // namespace troupe::detail
