#include "actors/workers/worker_meter.hpp"

#include "base/clock.hpp"

namespace troupe {
namespace {

std::int64_t monotonic_now() {
  return monotonic_clock().now().since_start.count();
}

}  // namespace

void worker_meter::begin_step() {
  busy_since.store(monotonic_now(), std::memory_order_relaxed);
}

void worker_meter::end_step(std::size_t rows_of_step) {
  busy_ns.fetch_add(monotonic_now() - busy_since.load(std::memory_order_relaxed), std::memory_order_relaxed);
  busy_since.store(0, std::memory_order_relaxed);
  steps.fetch_add(1, std::memory_order_relaxed);
  rows.fetch_add(rows_of_step, std::memory_order_relaxed);
}

}  // namespace troupe
