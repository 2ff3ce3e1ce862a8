// The steps in flight: what each of them does to the sequences in it, as far as that is known before it lands.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "base/clock.hpp"
#include "model/engine/scheduling/scheduled_sequence.hpp"

namespace troupe::detail {

/// A step that somebody who reads an answer along waits for.
struct mixed_step {
  instant since;
  std::int64_t prompt_tokens = 0;
};

struct flying_share {
  scheduled_sequence* sequence;
  std::size_t from = 0, to = 0;  ///< positions of the known tokens that it feeds
  std::int32_t proposals = 0;
  bool complete = false;                     ///< those are all that are known
  bool foreseen = false;                     ///< the next step was planned as if this one had landed
  std::optional<std::int32_t> kept_at = {};  ///< where its state is kept afterwards

  /// The next step has nothing for the sequence in any case.
  bool will_end() const;
  /// What it does counts as done: the sequence may be in the next step. A token that it will choose is chosen_before.
  void foresee();
  /// Its step never lands.
  void take_back() const;
};

struct flying_step {
  step_id id;
  std::vector<flying_share> shares;
  std::optional<mixed_step> mixed;
};

class flights {
 public:
  bool any() const { return !steps_.empty(); }
  std::size_t size() const { return steps_.size(); }

  /// A step begins, with shares that the caller will write.
  flying_step& begin(step_id id, const std::optional<mixed_step>& mixed);
  /// The step was carried out; none where it is not in flight. To be given back after use.
  std::optional<flying_step> land(step_id id);
  void give_back(flying_step landed);
  /// When the step began that landed last, if it was mixed, and nobody has asked so far.
  std::optional<mixed_step> take_landed();

  /// The one step in flight, if the next one can be planned as if it had landed; else nullptr.
  flying_step* foreseeable();

  /// No step lands any more. Tells of every sequence's first share among them: it is the one that was lost.
  template <class Visit>
  void lose_all(Visit visit) {
    for (const flying_step& step : steps_)
      for (const flying_share& share : step.shares) {
        if (share.sequence->landed()) continue;  // a step ahead of the one where it was lost
        visit(share);
        share.take_back();
      }
    steps_.clear();
    landed_.reset();
  }

  std::int32_t kept_states() const;  ///< that were asked for by those in flight; for tests

 private:
  std::vector<flying_step> steps_;
  std::optional<mixed_step> landed_;
  std::vector<std::vector<flying_share>> spare_lists_;
};

}  // namespace troupe::detail
