#include "model/engine/scheduling/flights.hpp"

#include <algorithm>
#include <cassert>
#include <utility>

namespace troupe::detail {
namespace {

/// All of its shares or none: sequences that had to wait for their step while others went ahead would be in other steps
/// than those ever after, and two small steps take longer than one large one.
bool can_foresee(const flying_step& step) {
  return std::all_of(step.shares.begin(), step.shares.end(), [](const flying_share& share) {
    const bool forks = share.complete && !share.sequence->followers.empty();
    return share.will_end() || (share.proposals == 0 && !forks && !share.foreseen);
  });
}

}  // namespace

bool flying_share::will_end() const {
  if (!sequence->followers.empty()) return false;
  return sequence->cancelled || (complete && to + 1 >= sequence->limit);
}

void flying_share::foresee() {
  assert(!sequence->landed() && !sequence->foreseen);
  foreseen = sequence->foreseen = true;
  sequence->stored.computed = to;
  if (complete) sequence->tokens.push_back(chosen_before);
}

void flying_share::take_back() const {
  sequence->in_flight = step_id{};
  sequence->foreseen = false;
  if (foreseen && complete) sequence->tokens.pop_back();
}

flying_step& flights::begin(step_id id, const std::optional<mixed_step>& mixed) {
  flying_step& step = steps_.emplace_back();
  step.id = id;
  step.mixed = mixed;
  if (spare_lists_.empty()) return step;
  step.shares = std::move(spare_lists_.back());
  spare_lists_.pop_back();
  return step;
}

std::optional<flying_step> flights::land(step_id id) {
  const auto found = std::find_if(steps_.begin(), steps_.end(), [&](const flying_step& step) { return step.id == id; });
  if (found == steps_.end()) return std::nullopt;
  flying_step landed = std::move(*found);
  steps_.erase(found);
  landed_ = landed.mixed;
  return landed;
}

void flights::give_back(flying_step landed) {
  landed.shares.clear();
  spare_lists_.push_back(std::move(landed.shares));
}

std::optional<mixed_step> flights::take_landed() {
  return std::exchange(landed_, std::nullopt);
}

flying_step* flights::foreseeable() {
  return steps_.size() == 1 && can_foresee(steps_.front()) ? &steps_.front() : nullptr;
}

std::int32_t flights::kept_states() const {
  std::int32_t kept = 0;
  for (const flying_step& step : steps_)
    for (const flying_share& share : step.shares) kept += share.kept_at.has_value();
  return kept;
}

}  // namespace troupe::detail
