#pragma once
#include <cstddef>
#include <functional>
#include <optional>
#include <vector>

#include "cluster/placement/placement_fit.hpp"

namespace troupe::detail {

/// Joins workers to units of `tensor` each, on one host where that is possible. Who is left over is in no unit.
std::vector<placement_unit> make_units(const std::vector<const worker_offer*>& workers, int tensor);

/// What units are taken first where several could do.
enum class unit_order : std::uint8_t {
  fastest,  ///< for few replicas of many workers
  smallest  ///< for as many replicas as can be: large ones are left for those that need them
};

struct stage_count {
  std::size_t least = 1, most = 0;
};

/// Units chosen to hold a run of layers, and how it is cut for them.
struct chosen_units {
  std::vector<placement_unit> units;
  cut how;
};

/// Takes the fewest units out of `from` that can hold the run, on one host where as few are enough there.
/// `tokens` with room for at least `least` and at most `most`, and such that `is_right` says yes: it knows what else is
/// on their machines. Nothing where it cannot be; then `from` stays as it is.
std::optional<chosen_units> take_units(std::vector<placement_unit>& from, const stage_costs& costs, layer_range run,
                                       stage_count stages, unit_order order, std::int64_t least, std::int64_t most,
                                       const std::function<bool(const chosen_units&)>& is_right);

}  // namespace troupe::detail
