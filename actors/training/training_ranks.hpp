// A trainer's part in a job that several share: it meets the others and adds up gradients with them. A thread of its
// own speaks for it: while the trainer computes or stands still, however long, the others hear several times a second
// that it is there. So one that hangs is found within the time-out of a call, and no pass is too long.
#pragma once
#include <condition_variable>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>

#include "actors/messages.hpp"
#include "model/train/training_group.hpp"
#include "transport/collective/collective.hpp"
#include "transport/collective/meeting.hpp"

namespace troupe {

class training_ranks {
 public:
  /// Returns when all have met. `patience`: with one that says nothing. Throws collective_failure where they do not
  /// meet, input_error where this trainer cannot.
  training_ranks(const train_job& order, meeting_place* place, std::chrono::milliseconds patience,
                 const std::stop_token& stop);
  /// Over any collective.
  training_ranks(std::unique_ptr<collective> ranks, const std::stop_token& stop);
  ~training_ranks();

  /// Refers to this object. Its functions throw collective_failure, also where they are told to stop; and whatever else
  /// ended the thread that speaks.
  training_group group();
  /// Throws the same where the others are lost.
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
  std::exception_ptr failure_;  ///< of the speaker
  std::thread speaker_;         ///< last: it uses all the others
};

}  // namespace troupe
