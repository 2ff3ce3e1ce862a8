// Planning a step while the one before it is still computed.
//
// What a step does is known before it lands, but for the tokens that it chooses and whether they end their answers. So
// the next one can be planned: an unknown token is `chosen_before`, and one that ends its answer makes the sequence's
// share of the next step a share for nobody.
#include <utility>

#include "model/engine/scheduling/batch_scheduler.hpp"

namespace troupe {

/// Who was held up by sequences in flight comes first: the next step is planned when nothing is in flight. So those
/// that go ahead of their own steps never keep out anybody who ranks before them.
bool batch_scheduler::plan_ahead(instant now, step_plan& plan) {
  plan.clear();
  if (held_up_ || must_fly_alone()) return false;
  detail::flying_step* before = flights_.foreseeable();
  if (before == nullptr) return false;
  foresee(*before);
  rules_.note_time(std::exchange(before->mixed, std::nullopt), now);
  planning step{.now = now, .plan = plan};
  return plan_next(step);
}

void batch_scheduler::foresee(detail::flying_step& step) {
  for (flying_share& share : step.shares) {
    if (share.will_end())
      leave_slots(*share.sequence);
    else
      share.foresee();
  }
}

}  // namespace troupe
