#pragma once
#include <vector>

#include "model/engine/scheduling/scheduled_sequence.hpp"

namespace troupe::detail {

/// Finds out which sequence makes the stages fail: those that were in lost steps too often get steps of their own, in
/// turns with the others.
class suspects {
 public:
  std::size_t count() const { return count_; }
  bool any() const { return count_ > 0; }

  /// What is known of the sequence's losses from now on.
  void set(scheduled_sequence& sequence, lost_steps lost);
  /// It was in a step that was lost, with its tokens from one position to another.
  void note_loss(scheduled_sequence& sequence, std::size_t from, std::size_t to, life_end why = life_end::loss);
  /// It got further than in the step that was lost last, or it ends.
  void acquit(scheduled_sequence& sequence) { set(sequence, {}); }

  /// Of the sequences that a step could have, leaves all that are no suspects, or one suspect alone: the one that
  /// waited longest. To be asked once for each step while there are any.
  void part(std::vector<scheduled_sequence*>& sequences);

 private:
  std::size_t count_ = 0;
  bool had_last_step_ = false;  ///< a suspect, alone
};

}  // namespace troupe::detail
