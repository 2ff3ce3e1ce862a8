#pragma once
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <type_traits>
#include <vector>

#include "base/rounding.hpp"

namespace troupe {

/// Runs the tasks of one job at a time on the calling thread and its helpers.
/// Goal: hand-over in a fraction of a microsecond while jobs follow each other, and no collapse when something else
/// wants the core: helpers spin briefly and then park, and the caller never waits for a helper that has not taken a
/// task. Owned and called by one thread.
class thread_pool {
 public:
  /// Throws input_error where the system gives fewer.
  explicit thread_pool(int threads);
  ~thread_pool();
  thread_pool(const thread_pool&) = delete;
  thread_pool& operator=(const thread_pool&) = delete;

  int threads() const { return static_cast<int>(helpers_.size()) + 1; }

  /// Calls `task(index, thread)` once for every index in [0, count); returns when all are done. `thread` is below
  /// threads() and no two running tasks share it. Throws what a task threw, when no task runs any more.
  template <class Task>
  void run(int count, Task&& task) {
    if (count <= 1 || helpers_.empty()) {
      for (int i = 0; i < count; ++i) task(i, 0);
      return;
    }
    using plain = std::remove_reference_t<Task>;
    run_job(
        count, [](void* context, int index, int thread) { (*static_cast<plain*>(context))(index, thread); },
        const_cast<void*>(static_cast<const void*>(&task)));
  }

  /// Cuts [0, size) into pieces of `piece`, the last perhaps smaller, and calls `work(first, count, thread)` for each.
  template <class Work>
  void run_pieces(std::int64_t size, std::int64_t piece, Work&& work) {
    run(static_cast<int>(ceil_div(size, piece)), [&](int index, int thread) {
      const std::int64_t first = index * piece;
      work(first, std::min(piece, size - first), thread);
    });
  }

  /// Calls `work(index)` once for every index in [0, size), `piece` of them a task: a few are not worth handing over.
  template <class Work>
  void run_each(std::int64_t size, std::int64_t piece, Work&& work) {
    run_pieces(size, piece, [&](std::int64_t first, std::int64_t count, int) {
      for (std::int64_t i = first; i < first + count; ++i) work(static_cast<int>(i));
    });
  }

 private:
  using job_function = void (*)(void* context, int index, int thread);

  void run_job(int count, job_function function, void* context);
  void run_part(int first, int count);
  bool take_one(int thread);
  void help(int thread);
  void stop();

  // The ticket holds generation (24 bits), task count (20) and next task (20): whoever raises `next` owns that task,
  // and the job cannot be replaced while an owned task is unfinished.
  alignas(64) std::atomic<std::uint64_t> ticket_{0};
  alignas(64) std::atomic<int> done_{0};
  alignas(64) job_function function_ = nullptr;
  void* context_ = nullptr;
  int first_ = 0;  // task of the ticket: a job of more than it counts is done in parts
  std::atomic<bool> stopping_{false};
  std::mutex fault_mutex_;
  std::exception_ptr fault_;  // of a task of this job
  std::vector<std::thread> helpers_;
};

/// Throws a runtime_error unless the system gives so many threads more. For libraries that end the process without a
/// word where they get none: ZeroMQ, CAF.
void require_threads(int count);

/// Processors that this process may use.
int available_processors();

}  // namespace troupe
