// Finds nodes that have been silent for too long.
//
// Goals: a bound that is kept (lost after `lost_after` of silence), a warning before it, and no false alarm because the
// head itself stood still: silence counts only while `tick` is called in time. After a pause everybody gets a fresh
// allowance, but the next one only after the time in which a silent node would have been lost, so that nodes are lost
// even if every tick is late.
#pragma once
#include <algorithm>
#include <optional>
#include <unordered_map>
#include <vector>

#include "base/clock.hpp"
#include "cluster/cluster_ids.hpp"

namespace troupe {

class failure_detector {
 public:
  enum class verdict : std::uint8_t { alive, suspect, lost };
  struct options {
    duration suspect_after = std::chrono::milliseconds(600);
    duration lost_after = std::chrono::milliseconds(1500);
    /// A node whose link closed has less time to come back.
    duration lost_after_close = std::chrono::milliseconds(700);
    duration longest_gap = std::chrono::milliseconds(500);  ///< between ticks; more than that counts as a pause

    /// Options from the one time that a cluster's file gives.
    static options of(duration lost_after) {
      options chosen;
      chosen.lost_after = lost_after;
      chosen.suspect_after = chosen.lost_after_close = lost_after / 2;
      chosen.longest_gap = std::min(chosen.longest_gap, lost_after);
      return chosen;
    }
    /// How often to tick when nodes are heard once in a `heartbeat`.
    duration tick_interval(duration heartbeat) const { return std::min(heartbeat, longest_gap) / 2; }
  };
  struct change {
    incarnation_id node;
    verdict judged = verdict::alive;
  };

  /// 0 < suspect_after <= lost_after, and 0 < longest_gap <= lost_after.
  explicit failure_detector(options chosen);

  void watch(incarnation_id node, instant now);
  void forget(incarnation_id node) { watched_.erase(node); }
  /// Takes a suspicion back.
  void heard(incarnation_id node, instant now);
  /// The node's link closed: it is suspect at once.
  void closed(incarnation_id node, instant now);
  /// The nodes whose verdict changed, by number. Those that are lost are no longer watched.
  std::vector<change> tick(instant now);

  /// How long it has been silent; pauses of the head do not count.
  duration silence(incarnation_id node, instant now) const;

 private:
  struct record {
    instant heard;  ///< by the clock of awake_
    std::optional<instant> closed;
    verdict last = verdict::alive;
  };
  instant awake_at(instant now) const;
  void note_tick(instant now);
  void give_fresh_allowance();
  verdict judge(const record& node) const;

  options options_;
  std::unordered_map<incarnation_id, record> watched_;
  instant awake_{};  ///< time at the last tick by a clock that stands still in pauses
  std::optional<instant> last_tick_, last_allowance_;
};

}  // namespace troupe
