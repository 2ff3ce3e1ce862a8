#pragma once
#include <cstdint>
#include <string>

#include "cli/display_pace.hpp"
#include "model/train/run/training_run.hpp"

namespace troupe {

/// Shows a run on standard error: on a terminal a bar with loss, speed and time left, in a pipe a plain line now and
/// then; neither for a run that is soon done. Validations stay on the screen.
class training_display {
 public:
  /// `is_brief`: the caller gets the outcome as JSON; then a short run shows nothing at all in a pipe, not even
  /// validations.
  training_display(std::int64_t steps, std::int64_t done, bool is_brief);
  ~training_display();
  training_display(const training_display&) = delete;
  training_display& operator=(const training_display&) = delete;

  void show(const step_report& report);
  void show(std::int64_t step, const validation_report& report);
  /// Of a run elsewhere, as it was reported.
  void show(std::int64_t step, double loss, double tokens_per_second);
  /// A line that stays.
  static void note(const std::string& line);
  std::int64_t tokens() const { return tokens_; }
  double seconds() const { return pace_.seconds(); }

 private:
  void clear() const;

  std::int64_t steps_, first_;
  std::int64_t tokens_ = 0;
  std::int64_t shown_ = -1;
  double loss_ = 0;  // smoothed
  bool is_brief_;
  display_pace pace_;
};

}  // namespace troupe
