// A worker's part in a stage that several share: it meets the other ranks, gathers with them, and is woken when it
// waits for ranks that will not come.
#pragma once
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>

#include "actors/messages.hpp"
#include "model/arch/tensor_split.hpp"
#include "transport/collective/meeting.hpp"

namespace troupe {

class collective;

/// Whoever sees a stage's orders on their way to a worker rings: a worker that waits for the ranks of an earlier life
/// gives them up. Thread-safe.
class rank_alarm {
 public:
  /// A start_stage is on its way.
  void ring();
  /// The worker begins with a start_stage. Stopped from the start where a later one has been announced.
  std::stop_token begin();

 private:
  std::mutex mutex_;
  std::uint64_t announced_ = 0, begun_ = 0;
  std::stop_source now_;
};

struct rank_settings {
  std::shared_ptr<meeting_place> place;  ///< none: this worker shares no stage
  std::chrono::milliseconds meeting_patience{20'000}, patience{5'000};
};

class stage_ranks {
 public:
  /// Returns when all ranks have met. Throws collective_failure where they do not, input_error where this worker
  /// cannot.
  stage_ranks(const start_stage& what, const rank_settings& settings, const std::stop_token& stop);
  ~stage_ranks();

  /// Refers to this object.
  tensor_split split() const;
  /// While this worker computes a step: the others wait for its share of an op for as long as it takes.
  void set_busy(bool is_busy) const;

 private:
  std::unique_ptr<collective> ranks_;
  std::optional<std::stop_callback<std::function<void()>>> on_stop_;  ///< goes before what it interrupts
};

}  // namespace troupe
