#include "model/engine/stages/kept_states.hpp"

#include "base/error.hpp"
#include "base/to_size.hpp"

namespace troupe {

void kept_states::take(const step_plan& plan) {
  if (states_.empty()) return;
  ++taken_;
  for (const state_copy& copy : plan.state_copies) {
    const std::int64_t position = states_.at(to_size(copy.from)).position;
    states_.at(to_size(copy.to)) = {copy.sequence, position};
  }
  for (const planned_share& share : plan.shares) take(share, plan.id);
}

void kept_states::take(const planned_share& share, step_id step) {
  state& own = states_.at(to_size(share.state));
  if (own.taken == taken_) refuse("step {} has two sequences for one state", step.value);
  if (share.proposals > 0) refuse("step {} has guesses, which this model could not take back", step.value);
  const bool goes_on = own.sequence == share.sequence && own.position == share.position;
  if (share.position > 0 && !goes_on) refuse("step {} goes on from a state that this stage does not have", step.value);
  own = {share.sequence, share.position + share.tokens, taken_};
}

}  // namespace troupe
