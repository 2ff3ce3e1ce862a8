// A fine-tune in progress: one thread with idle priority, and the helpers of its pool.
#pragma once
#include <atomic>
#include <condition_variable>
#include <filesystem>
#include <functional>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>
#include <variant>

#include "actors/messages.hpp"
#include "actors/training/training_spec.hpp"
#include "model/arch/loaded_model.hpp"
#include "transport/collective/meeting.hpp"

namespace troupe {

/// What a trainer has of its node.
struct training_site {
  std::filesystem::path model;
  load_options load;             ///< as the workers load it: then the packed file is the same
  std::filesystem::path folder;  ///< FOLDER/<job>/ holds a job's files
  int threads = 1;
  device_id device = {};  ///< what computes the passes
  bool idle_priority = true;
  /// The process is told to end and the thread that computes cannot be stopped in time: ends the process, may not
  /// return.
  std::function<void()> leave = {};
  std::function<void(const std::string& why)> on_device_lost = {};  ///< likewise, once there is a checkpoint
  duration checkpoint_after = std::chrono::seconds(60);
  duration report_after = std::chrono::milliseconds(200);
  std::shared_ptr<meeting_place> meeting = {};       ///< for trainers that share a job; none: it shares none
  std::chrono::milliseconds ranks_patience{10'000};  ///< with one of them that says nothing
};

/// How much of the time may be used: asked between ops, on the thread that computes. Sleeps for what it owes.
class training_brake {
 public:
  void set_share(double share);
  void stop();
  bool is_stopped() const { return stopped_.stop_requested(); }
  std::stop_token token() const { return stopped_.get_token(); }
  /// Returns false when the work is to stop.
  bool pass();

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::atomic<double> share_{1};
  std::stop_source stopped_;
  instant passed_;
  double owed_ = 0;  ///< seconds
};

/// Begins at once. Says how far it is, and once, last, how it ended; on its own thread.
class training_task {
 public:
  using news = std::variant<training_progress, training_ended>;

  training_task(training_site site, train_job order, std::function<void(news)> say);
  ~training_task();  ///< stops, with a checkpoint, and waits for that
  training_task(const training_task&) = delete;
  training_task& operator=(const training_task&) = delete;

  void stop() { brake_.stop(); }
  /// After stop(): whether the thread has ended. One with idle priority may not be let run for long.
  bool ends_within(duration longest);
  void set_share(double share) { brake_.set_share(share); }
  std::filesystem::path folder() const { return site_.folder / order_.job; }

  static constexpr const char* result_folder = "result";
  static constexpr const char* checkpoint_name = "checkpoint.safetensors";

 private:
  class session;
  void run();
  std::vector<training_file> train();

  training_site site_;
  train_job order_;
  std::function<void(news)> say_;
  training_brake brake_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool has_ended_ = false;
  std::thread thread_;  ///< last: it uses all the others
};

}  // namespace troupe
