#include "cluster/members/failure_detector.hpp"

#include <algorithm>
#include <cassert>
#include <utility>

namespace troupe {

failure_detector::failure_detector(options chosen) : options_(chosen) {
  assert(duration::zero() < chosen.suspect_after && chosen.suspect_after <= chosen.lost_after);
  assert(duration::zero() < chosen.longest_gap && chosen.longest_gap <= chosen.lost_after);
}

void failure_detector::watch(incarnation_id node, instant now) {
  watched_[node] = {awake_at(now), {}, verdict::alive};
}

void failure_detector::heard(incarnation_id node, instant now) {
  if (watched_.contains(node)) watch(node, now);
}

void failure_detector::closed(incarnation_id node, instant now) {
  const auto found = watched_.find(node);
  if (found == watched_.end()) return;
  record& state = found->second;
  if (!state.closed) state.closed = awake_at(now);
  state.last = verdict::suspect;
}

std::vector<failure_detector::change> failure_detector::tick(instant now) {
  note_tick(now);
  std::vector<change> changes;
  for (auto& [node, state] : watched_) {
    const verdict before = std::exchange(state.last, judge(state));
    if (state.last != before) changes.push_back({node, state.last});
  }
  for (const change& each : changes) {
    if (each.judged == verdict::lost) watched_.erase(each.node);
  }
  std::sort(changes.begin(), changes.end(), [](const change& a, const change& b) { return a.node < b.node; });
  return changes;
}

duration failure_detector::silence(incarnation_id node, instant now) const {
  const auto found = watched_.find(node);
  return found == watched_.end() ? duration::max() : awake_at(now) - found->second.heard;
}

instant failure_detector::awake_at(instant now) const {
  if (!last_tick_) return awake_;
  return awake_ + std::clamp(now - *last_tick_, duration::zero(), options_.longest_gap);
}

void failure_detector::note_tick(instant now) {
  const bool was_asleep = last_tick_ && now - *last_tick_ > options_.longest_gap;
  awake_ = awake_at(now);
  last_tick_ = now;
  // Between two allowances there must be time to find a node lost, even if every tick is late.
  const bool is_due = !last_allowance_ || awake_ - *last_allowance_ >= 2 * options_.lost_after;
  if (was_asleep && is_due) give_fresh_allowance();
}

void failure_detector::give_fresh_allowance() {
  last_allowance_ = awake_;
  for (auto& [node, state] : watched_) {
    state.heard = awake_;
    if (state.closed) state.closed = awake_;
  }
}

failure_detector::verdict failure_detector::judge(const record& node) const {
  const duration silent = awake_ - node.heard;
  if (silent >= options_.lost_after) return verdict::lost;
  if (node.closed && awake_ - *node.closed >= options_.lost_after_close) return verdict::lost;
  return node.closed || silent >= options_.suspect_after ? verdict::suspect : verdict::alive;
}

}  // namespace troupe
