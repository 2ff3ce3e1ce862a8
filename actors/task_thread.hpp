// A thread for tasks that take long. Other threads must not be held up: the server's write everyone's streams, the
// gateway's passes on everyone's tokens, and an actor's has other messages to answer.
#pragma once
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>

namespace troupe {

/// Thread-safe. Owners take turns, a task each, so nobody waits long for the many tasks of another.
class task_thread {
 public:
  using task = std::function<void()>;

  explicit task_thread(std::size_t most_bytes = std::size_t{256} << 20);
  ~task_thread();  ///< like stop()
  task_thread(const task_thread&) = delete;
  task_thread& operator=(const task_thread&) = delete;

  /// Those of one owner run one after the other, in order. They must not throw. `owner`: a key's name; empty: nobody's
  /// in particular.
  void run(task work, const std::string& owner = {});
  /// Like run(), but returns false if the waiting tasks hold too many bytes already: of one owner with a name, half of
  /// what all may. `bytes`: what this task holds until it is done.
  bool offer(std::size_t bytes, task work, const std::string& owner = {});
  /// Waits for the task that runs. Tasks that have not begun are dropped, and so are later ones.
  void stop();

  /// For tests.
  std::size_t waiting() const;

 private:
  struct item {
    std::size_t bytes = 0;
    task run;
  };
  /// Who has tasks that wait or run.
  struct account {
    std::deque<item> waiting;
    std::size_t bytes = 0;  ///< held by them
  };
  using accounts = std::map<std::string, account>;
  bool has_room(std::size_t bytes, const std::string& owner) const;
  void run_next(std::unique_lock<std::mutex>& lock);
  void work();

  const std::size_t most_bytes_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  accounts owners_;
  std::deque<accounts::iterator> turns_;  ///< owners with waiting tasks, each once
  std::size_t bytes_ = 0;                 ///< held by tasks that wait or run
  bool stopped_ = false;
  std::thread thread_;
};

}  // namespace troupe
