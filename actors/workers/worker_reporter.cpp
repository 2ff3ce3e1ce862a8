#include "actors/workers/worker_reporter.hpp"

#include <algorithm>
#include <utility>

#include "base/resident_bytes.hpp"

namespace troupe {
namespace {

constexpr duration latest_report = std::chrono::seconds(1);  // behind its time, in a process that runs

}  // namespace

worker_reporter::worker_reporter(std::shared_ptr<const worker_meter> meter, duration interval,
                                 std::function<std::uint64_t()> free_memory)
    : meter_(std::move(meter)), interval_(interval), free_memory_(std::move(free_memory)) {}

node_report worker_reporter::report(instant now) {
  node_report report;
  const std::uint64_t rows = meter_->rows.load(std::memory_order_relaxed);
  const double seconds = seconds_of(now - report_before_);
  report.steps = meter_->steps.load(std::memory_order_relaxed);
  report.busy_ms =
      static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::milliseconds>(time_in_step(now)).count());
  report.rows_per_second = static_cast<double>(rows - rows_before_) / seconds;
  report.resident_bytes = resident_bytes();
  report.busy_seconds = static_cast<double>(meter_->busy_ns.load(std::memory_order_relaxed)) * 1e-9;
  // Only an idle worker can be a spare, so only such a one measures its free memory.
  if (free_memory_ && rows == rows_before_) report.free_bytes = free_memory_();
  rows_before_ = rows;
  report_before_ = now;
  return report;
}

/// A longer pause between two reports means that this process was stopped, and the worker with it: that time says
/// nothing of the step.
duration worker_reporter::time_in_step(instant now) {
  const std::int64_t since = meter_->busy_since.load(std::memory_order_relaxed);
  if (std::exchange(step_since_, since) != since) step_lasted_ = {};
  if (since == 0) return {};
  const instant counted = std::max(instant{duration(since)}, report_before_);
  step_lasted_ += std::clamp(now - counted, duration{}, interval_ + latest_report);
  return step_lasted_;
}

}  // namespace troupe
