#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace troupe {

/// What the worker does, for the actor that sends heartbeats. Only the worker writes it.
struct worker_meter {
  std::atomic<std::uint64_t> steps{0}, rows{0};
  std::atomic<std::int64_t> busy_since{0};  ///< of the monotonic clock; 0: idle
  std::atomic<std::int64_t> busy_ns{0};     ///< in all steps so far

  bool is_busy() const { return busy_since.load(std::memory_order_relaxed) != 0; }
  void begin_step();
  void end_step(std::size_t rows_of_step);
};

}  // namespace troupe
