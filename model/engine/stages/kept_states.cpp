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
  for (const planned_row& row : plan.rows) take(row, plan.id);
}

void kept_states::take(const planned_row& row, step_id step) {
  state& own = states_.at(to_size(row.state));
  if (own.taken == taken_) refuse("step {} has two rows for one state", step.value);
  if (row.proposals > 0) refuse("step {} has guesses, which this model could not take back", step.value);
  const bool goes_on = own.sequence == row.sequence && own.position == row.position;
  if (row.position > 0 && !goes_on) refuse("step {} goes on from a state that this stage does not have", step.value);
  own = {row.sequence, row.position + row.tokens, taken_};
}

}  // namespace troupe
