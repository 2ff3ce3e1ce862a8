// A fine-tune in progress: one thread with idle priority, and the helpers of its pool.
#pragma once
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <variant>

#include "actors/messages.hpp"
#include "actors/training/training_brake.hpp"
#include "base/device_id.hpp"
#include "model/arch/loaded_model.hpp"
#include "transport/collective/meeting.hpp"

namespace troupe {

class training_ranks;

/// What a trainer knows of its node.
struct training_site {
  std::filesystem::path model;
  load_options load;             ///< the same as the workers', so that both use one packed file
  std::filesystem::path folder;  ///< FOLDER/<job>/ holds a job's files
  int threads = 1;
  device_id device = {};  ///< what computes
  bool idle_priority = true;
  /// Called after the checkpoint. It ends the process, so it may not return.
  std::function<void(const std::string& why)> on_device_lost = {};
  duration checkpoint_after = std::chrono::seconds(60);
  std::shared_ptr<meeting_place> meeting = {};  ///< where trainers that share a job meet; none: this one shares no jobs
  std::chrono::milliseconds ranks_patience{10'000};  ///< how long one that says nothing is waited for
};

/// Begins at once. `say` is called on the task's own thread: with the progress, and once, last, with the end. The other
/// trainers of a shared job miss this one only when the task goes, so that the head can hear before why it has ended.
class training_task {
 public:
  using news = std::variant<training_progress, training_ended>;

  training_task(training_site site, train_job order, std::function<void(news)> say);
  ~training_task();  ///< stops, waits for the checkpoint
  training_task(const training_task&) = delete;
  training_task& operator=(const training_task&) = delete;

  void set_share(double share) { brake_.set_share(share); }
  std::filesystem::path folder() const { return site_.folder / order_.job; }

  static constexpr const char* result_folder = "result";

 private:
  class session;
  void run();
  std::vector<training_file> train();

  training_site site_;
  train_job order_;
  std::function<void(news)> say_;
  training_brake brake_;
  std::unique_ptr<training_ranks> ranks_;  ///< of a shared job
  std::thread thread_;                     ///< last: it uses all members above
};

}  // namespace troupe
