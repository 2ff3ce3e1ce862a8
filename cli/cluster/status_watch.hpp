#pragma once
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "base/wake_signal.hpp"
#include "cli/cluster/cluster_client.hpp"

namespace troupe {

/// Asks a head for its status again and again, on a thread of its own: whoever has nodes to start again cannot wait for
/// an answer that may not come.
class status_watch {
 public:
  explicit status_watch(connect_options head);
  ~status_watch();  ///< does not wait for an answer
  status_watch(const status_watch&) = delete;
  status_watch& operator=(const status_watch&) = delete;

  /// The newest that it has said since the last call, if anything: JSON.
  std::optional<std::string> take();
  /// Readable while take() has something.
  int news_descriptor() const { return has_news_.descriptor(); }
  /// From now on asks half as often.
  void slow_down() { interval_ = 2 * first_interval; }

 private:
  static constexpr std::chrono::milliseconds first_interval{300};

  void run();
  std::optional<std::string> ask(std::unique_ptr<cluster_client>& head);
  void check();

  const connect_options head_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_stopping_ = false;
  std::optional<std::string> news_;
  wake_signal has_news_;
  std::atomic<std::chrono::milliseconds> interval_{first_interval};
  std::chrono::steady_clock::time_point give_up_at_;  ///< the thread's own
  std::thread thread_;
};

}  // namespace troupe
