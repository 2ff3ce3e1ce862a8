// A thread for tasks that take long. Other threads must not be held up: the server's write everyone's streams, the
// gateway's passes on everyone's tokens, and an actor's has other messages to answer.
#pragma once
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace troupe {

/// Thread-safe.
class task_thread {
 public:
  using task = std::function<void()>;

  explicit task_thread(std::size_t most_bytes = std::size_t{256} << 20);
  ~task_thread();  ///< like stop()
  task_thread(const task_thread&) = delete;
  task_thread& operator=(const task_thread&) = delete;

  /// Tasks run one after the other, in order. They must not throw.
  void run(task work);
  /// Like run(), but returns false if the waiting tasks hold too many bytes already. `bytes`: what this task holds
  /// until it is done.
  bool offer(std::size_t bytes, task work);
  /// Waits for the task that runs. Tasks that have not begun are dropped, and so are later ones.
  void stop();

  std::size_t waiting() const;

 private:
  struct item {
    std::size_t bytes = 0;
    task run;
  };
  void work();

  const std::size_t most_bytes_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<item> waiting_;
  std::size_t bytes_ = 0;  ///< held by tasks that wait or run
  bool stopped_ = false;
  std::thread thread_;
};

}  // namespace troupe
