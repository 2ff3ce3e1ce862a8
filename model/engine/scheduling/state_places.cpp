#include "model/engine/scheduling/state_places.hpp"

#include <algorithm>
#include <numeric>

#include "base/to_size.hpp"

namespace troupe::detail {
namespace {

/// The last tokens of a chat's prompt may be none of its next turn: templates open thoughts there, and leave them out
/// later.
std::size_t end_to_keep(std::size_t prompt_tokens) {
  constexpr std::size_t left_out = 8;
  return (prompt_tokens - std::min(left_out + 1, prompt_tokens)) / block_tokens * block_tokens;
}

}  // namespace

state_places::state_places(const sizes& chosen)
    : running_(chosen.running),
      worth_keeping_(chosen.worth_keeping),
      beginnings_(running_, any() ? chosen.kept_beginnings : 0, chosen.blocks),
      free_(to_size(running_)) {
  std::iota(free_.rbegin(), free_.rend(), 0);
}

void state_places::take(scheduled_sequence& sequence) {
  if (!any()) return;
  sequence.state_place = free_.back();
  free_.pop_back();
}

void state_places::leave(const scheduled_sequence& sequence) {
  if (any()) free_.push_back(sequence.state_place);
}

void state_places::fetch_beginning(const scheduled_sequence& sequence) {
  if (!any() || sequence.stored.computed == 0) return;
  copies_.push_back({beginnings_.use(sequence.stored.place.last), sequence.state_place, sequence.id});
}

void state_places::fork(const scheduled_sequence& leader, scheduled_sequence& follower) {
  if (!any()) return;
  take(follower);
  copies_.push_back({leader.state_place, follower.state_place, follower.id});
}

std::size_t state_places::next_to_keep(const scheduled_sequence& sequence) const {
  const stored_text& stored = sequence.stored;
  if (!beginnings_.any() || !stored.publishing) return 0;
  for (const std::size_t place : {stored.branch, end_to_keep(sequence.prompt_tokens)})
    if (place > stored.computed && place >= stored.kept + worth_keeping_) return place;
  return 0;
}

std::optional<std::int32_t> state_places::keep(scheduled_sequence& sequence, std::size_t to) {
  if (to != next_to_keep(sequence)) return std::nullopt;
  const auto place = beginnings_.take();
  if (place) copies_.push_back({sequence.state_place, *place, sequence.id});
  sequence.stored.kept = to;
  return place;
}

void state_places::publish(std::int32_t place, const stored_text& stored, std::size_t to) {
  const std::size_t blocks = to / block_tokens;
  if (stored.published == blocks)
    beginnings_.give(place, stored.blocks[blocks - 1]);
  else
    put_back(place);
}

bool state_places::is_consistent(std::vector<std::int32_t> taken, std::int32_t kept) const {
  taken.insert(taken.end(), free_.begin(), free_.end());
  std::sort(taken.begin(), taken.end());
  std::vector<std::int32_t> all(to_size(running_));
  std::iota(all.begin(), all.end(), 0);
  return taken == all && kept == beginnings_.pending() && beginnings_.is_consistent();
}

}  // namespace troupe::detail
