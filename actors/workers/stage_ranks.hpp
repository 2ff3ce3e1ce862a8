// A worker's part in a stage that several workers share: it meets the other ranks, exchanges data with them, and can be
// woken when it waits for ranks that will not come.
#pragma once
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>

#include "actors/messages.hpp"
#include "base/device_id.hpp"
#include "model/arch/tensor_split.hpp"
#include "transport/collective/meeting.hpp"

namespace troupe {

class collective;

/// Rings when a new start_stage is on its way to a worker, so that a worker that still waits for the ranks of an
/// earlier life gives up. Thread-safe.
class rank_alarm {
 public:
  /// To be called when a start_stage is on its way, by the thread that sees it first.
  void ring();
  /// To be called when the worker begins with a start_stage. The token is stopped already if a later one was announced.
  std::stop_token begin();

 private:
  std::mutex mutex_;
  std::uint64_t announced_ = 0, begun_ = 0;
  std::stop_source current_;
};

struct rank_settings {
  std::shared_ptr<meeting_place> place;                ///< null: this worker shares no stage
  std::chrono::milliseconds meeting_patience{20'000};  ///< each time: ranks of Gloo meet twice
  std::chrono::milliseconds patience{5'000};
  bool by_nccl = false;  ///< from GPU to GPU; else by Gloo
};

class stage_ranks {
 public:
  /// Returns when all ranks have met. Throws collective_failure if they do not meet, input_error if this worker cannot
  /// take part, or not all of them compute on the same kind of device.
  stage_ranks(const start_stage& order, const rank_settings& settings, device_id device, const std::stop_token& stop);
  ~stage_ranks();

  /// The result refers to this object.
  tensor_split split() const;
  /// While it is busy with a step, the other ranks wait for this worker as long as it takes.
  void set_busy(bool is_busy) const;

 private:
  std::unique_ptr<collective> ranks_;
  std::optional<std::stop_callback<std::function<void()>>> on_stop_;  ///< last: it interrupts ranks_
};

}  // namespace troupe
