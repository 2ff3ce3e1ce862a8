// Planning a step while the one before it is still computed.
//
// What a step does is known before it lands, but for the tokens that it chooses and whether they end their answers. So
// the next one can be planned: an unknown token is `chosen_before`, and one that ends its answer makes the sequence's
// share of the next step a share for nobody.
#include <algorithm>
#include <cassert>

#include "model/engine/scheduling/batch_scheduler.hpp"

namespace troupe {

/// Who was held up by sequences in flight comes first: the next step is planned when nothing is in flight. So those
/// that go ahead of their own steps never keep out anybody who ranks before them.
bool batch_scheduler::plan_ahead(instant now, step_plan& plan) {
  plan.clear();
  if (held_up_ || must_fly_alone() || flying_.size() != 1 || !can_foresee(flying_.front())) return false;
  flying_step& before = flying_.front();
  foresee(before);
  note_time(before.mixed, now);
  planning step{.now = now, .plan = plan};
  return plan_next(step);
}

/// All of its shares or none: sequences that had to wait for their step while others went ahead would be in other steps
/// than those ever after, and two small steps take longer than one large one.
bool batch_scheduler::can_foresee(const flying_step& step) const {
  return std::all_of(step.shares.begin(), step.shares.end(), [&](const flying_share& share) {
    const bool forks = share.complete && !share.sequence->followers.empty();
    return will_end(share) || (share.proposals == 0 && !forks && !share.foreseen);
  });
}

/// The next step has nothing for it in any case.
bool batch_scheduler::will_end(const flying_share& share) const {
  const scheduled_sequence& sequence = *share.sequence;
  if (!sequence.followers.empty()) return false;
  return sequence.cancelled || (share.complete && share.to + 1 >= sequence.limit);
}

void batch_scheduler::foresee(flying_step& step) {
  for (flying_share& share : step.shares) {
    scheduled_sequence& sequence = *share.sequence;
    if (will_end(share)) {
      leave_slots(sequence);
      continue;
    }
    assert(sequence.in_flight == step.id && !sequence.foreseen);
    share.foreseen = sequence.foreseen = true;
    sequence.computed = share.to;
    if (share.complete) sequence.tokens.push_back(chosen_before);
  }
}

/// The step never lands.
void batch_scheduler::take_back(const flying_share& share) {
  scheduled_sequence& sequence = *share.sequence;
  sequence.in_flight = step_id{};
  sequence.foreseen = false;
  if (share.foreseen && share.complete) sequence.tokens.pop_back();
}

}  // namespace troupe
