// For the stages of models that keep states: what each state was made of.
#pragma once
#include <cstdint>
#include <vector>

#include "base/to_size.hpp"
#include "model/engine/scheduling/step_plan.hpp"

namespace troupe {

/// A state stands where the last row left it. A share that went on from another place, or from another's state, would
/// get tokens that look like any others: so it is refused.
class kept_states {
 public:
  /// So many; 0: the model keeps none.
  explicit kept_states(std::int32_t count) : states_(to_size(count)) {}

  /// The copies and shares of the next step, whose states are among them. Throws input_error where a share does not go
  /// on from its own state, where two have one, and where a row could have to be taken back.
  void take(const step_plan& plan);

 private:
  struct state {
    sequence_id sequence;
    std::int64_t position = 0;  ///< of the next row
    std::uint64_t taken = 0;    ///< the last step that had it
  };
  void take(const planned_share& share, step_id step);

  std::vector<state> states_;
  std::uint64_t taken_ = 0;  ///< steps
};

}  // namespace troupe
