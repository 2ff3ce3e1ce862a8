// What takes long, on one thread of its own: the server's threads write everyone's streams, the gateway's passes
// everyone's tokens on, and an actor's has others to hear.
#pragma once
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace troupe {

/// Thread-safe.
class long_work {
 public:
  using task = std::function<void()>;

  explicit long_work(std::size_t most_bytes = std::size_t{256} << 20);
  ~long_work();  ///< stops
  long_work(const long_work&) = delete;
  long_work& operator=(const long_work&) = delete;

  /// One after the other, in the order in which they come. They must not throw.
  void run(task what);
  /// False where what waits holds too much already. `bytes`: what this one holds until it is done.
  bool offer(std::size_t bytes, task what);
  /// Waits for what is under way. What has not begun is let go, and so is what comes later.
  void stop();

  std::size_t waiting() const;

 private:
  struct item {
    std::size_t bytes = 0;
    task what;
  };
  void work();

  const std::size_t most_bytes_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<item> waiting_;
  std::size_t bytes_ = 0;  ///< held by what waits or is under way
  bool stopped_ = false;
  std::thread thread_;
};

}  // namespace troupe
