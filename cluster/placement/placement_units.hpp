#pragma once
#include <cstddef>
#include <functional>
#include <optional>
#include <vector>

#include "cluster/placement/placement_fit.hpp"

namespace troupe::detail {

/// Joins workers to units of `tensor` each, on one host if possible. Workers that are left over are in no unit.
std::vector<placement_unit> make_units(const std::vector<const worker_offer*>& workers, int tensor);

/// Which units are taken first.
enum class unit_order : std::uint8_t {
  fastest,  ///< if there are more workers than the replicas need
  smallest  ///< for as many replicas as possible: large units are left for replicas that need them
};

struct stage_count {
  std::size_t least = 1, most = 0;
};

/// A run of layers for which units are sought.
struct unit_demand {
  layer_range run;
  stage_count stages;
  unit_order order = unit_order::fastest;
  std::int64_t least = 0, most = 0;  ///< tokens
};

/// Units that were chosen for a run of layers, and how it is cut for them.
struct chosen_units {
  std::vector<placement_unit> units;
  cut how;
};

/// Takes the fewest units out of `from` that can hold the run with room for the tokens, on one host if as few are
/// enough there. `is_right` may refuse units because of what else is on their machines. If there are none,
/// returns nothing and leaves `from` as it is.
std::optional<chosen_units> take_units(std::vector<placement_unit>& from, const stage_costs& costs,
                                       const unit_demand& wanted,
                                       const std::function<bool(const chosen_units&)>& is_right);

}  // namespace troupe::detail
