#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>

#include "model/train/run/training_run.hpp"

namespace troupe {

/// A run from where it is to its end: its steps, and between them what falls due, always in this order: a step, a
/// validation, a checkpoint. Whoever owns it hears of each.
class training_course {
 public:
  struct options {
    std::int64_t validate_every = 0;    ///< steps; 0: an epoch
    std::int64_t checkpoint_every = 0;  ///< steps; 0: only when `wants_checkpoint` says so
    std::filesystem::path checkpoint;   ///< the file
  };
  /// Any may be empty.
  struct events {
    std::function<void()> before_step = {};  ///< throws where the run is to stop
    std::function<void(const step_report&)> on_step = {};
    std::function<void(const validation_report&)> on_validation = {};
    std::function<bool()> wants_checkpoint = {};  ///< after a step that is not the last
    std::function<void()> on_checkpoint = {};
  };
  training_course(training_run& run, options chosen, events heard);

  /// Runs to the end. Validates first if that is due before a step: at the beginning, or if the run was stopped before
  /// it could.
  void all_steps();
  void save_checkpoint();
  const std::filesystem::path& checkpoint() const { return options_.checkpoint; }

 private:
  bool is_validation_due() const;
  bool is_checkpoint_due() const;
  void validate();

  training_run& run_;
  options options_;
  events heard_;
};

}  // namespace troupe
