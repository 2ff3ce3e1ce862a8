#include "model/train/run/training_course.hpp"

#include <utility>

namespace troupe {

training_course::training_course(training_run& run, options chosen, events heard)
    : run_(run), options_(std::move(chosen)), heard_(std::move(heard)) {}

void training_course::all_steps() {
  if (is_validation_due() && run_.best().step != run_.done()) validate();
  while (!run_.finished()) {
    if (heard_.before_step) heard_.before_step();
    const step_report report = run_.step();
    if (heard_.on_step) heard_.on_step(report);
    if (is_validation_due()) validate();
    if (is_checkpoint_due()) save_checkpoint();
  }
}

void training_course::save_checkpoint() {
  run_.save(options_.checkpoint);
  if (heard_.on_checkpoint) heard_.on_checkpoint();
}

bool training_course::is_validation_due() const {
  const std::int64_t every = options_.validate_every > 0 ? options_.validate_every : run_.steps_per_epoch();
  return run_.can_validate() && (run_.done() % every == 0 || run_.finished());
}

bool training_course::is_checkpoint_due() const {
  if (run_.finished()) return false;
  const bool by_steps = options_.checkpoint_every > 0 && run_.done() % options_.checkpoint_every == 0;
  return by_steps || (heard_.wants_checkpoint && heard_.wants_checkpoint());
}

void training_course::validate() {
  const validation_report report = run_.validate();
  if (heard_.on_validation) heard_.on_validation(report);
}

}  // namespace troupe
