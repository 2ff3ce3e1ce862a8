#pragma once
#include <cstdint>
#include <functional>
#include <memory>

#include "actors/workers/worker_meter.hpp"
#include "base/clock.hpp"
#include "cluster/members/node_hello.hpp"

namespace troupe {

/// Says again and again what a node's worker does.
class worker_reporter {
 public:
  /// One report in `interval`, at least. `free_memory` measures what the node may take for weights, keys and values;
  /// empty: reports do not say it.
  worker_reporter(std::shared_ptr<const worker_meter> meter, duration interval,
                  std::function<std::uint64_t()> free_memory = {});

  /// What it did since the last report, and does. `now` is the monotonic clock's, like the meter's times.
  node_report report(instant now);

 private:
  duration time_in_step(instant now);

  std::shared_ptr<const worker_meter> meter_;
  duration interval_;
  std::function<std::uint64_t()> free_memory_;
  std::uint64_t rows_before_ = 0;
  instant report_before_;
  std::int64_t step_since_ = 0;  ///< when the step began that the worker was in at the last report; 0: in none
  duration step_lasted_{};       ///< by what was reported
};

}  // namespace troupe
