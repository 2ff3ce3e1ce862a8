#include "cluster/training/work_debt.hpp"

#include <algorithm>

namespace troupe {

void work_debt::rest(duration time, double share) {
  seconds_ = std::max(0.0, seconds_ - seconds_of(time) * share / (1 - share));
}

}  // namespace troupe
