// A trainer's part in a job that several trainers share: it meets the others and adds up gradients with them. A thread
// of its own (the speaker) talks to the others, so they hear of this trainer several times a second, however long it
// computes or stands still. So a trainer that hangs is found within the time-out of a call, and no pass is too long.
#pragma once
#include <condition_variable>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <stop_token>
#include <thread>

#include "actors/messages.hpp"
#include "model/train/run/training_group.hpp"
#include "transport/collective/collective.hpp"
#include "transport/collective/meeting.hpp"

namespace troupe {

class training_ranks {
 public:
  /// Returns when all have met. `patience`: how long a silent trainer is waited for. Throws collective_failure if they
  /// do not meet, input_error if this trainer cannot take part.
  training_ranks(const train_job& order, meeting_place* place, std::chrono::milliseconds patience,
                 const std::stop_token& stop);
  /// Over a collective that has met already.
  training_ranks(std::unique_ptr<collective> ranks, const std::stop_token& stop);
  ~training_ranks();

  /// The result refers to this object. Its functions throw collective_failure, also when told to stop, and rethrow
  /// whatever else ended the speaker.
  training_group group();
  /// Throws like the functions above if the other trainers are lost.
  void check() const;

 private:
  using work = std::function<void(collective&)>;

  void together(const work& what);
  void speak();
  bool all_are_ready(bool is_ready);
  void leave();

  std::unique_ptr<collective> ranks_;
  std::stop_token stop_;
  mutable std::mutex mutex_;
  std::condition_variable_any changed_;
  const work* wanted_ = nullptr;  ///< what the trainer waits for
  bool leaves_ = false;
  std::exception_ptr failure_;  ///< what ended the speaker
  std::thread speaker_;         ///< last: it uses all members above
};

}  // namespace troupe
