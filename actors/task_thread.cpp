#include "actors/task_thread.hpp"

#include <utility>

namespace troupe {

task_thread::task_thread(std::size_t most_bytes) : most_bytes_(most_bytes), thread_([this] { work(); }) {}

task_thread::~task_thread() {
  stop();
}

void task_thread::run(task work) {
  (void)offer(0, std::move(work));
}

bool task_thread::offer(std::size_t bytes, task work) {
  const std::lock_guard lock(mutex_);
  if (stopped_) return true;
  if (bytes > 0 && bytes_ > 0 && bytes_ + bytes > most_bytes_) return false;
  bytes_ += bytes;
  waiting_.push_back({bytes, std::move(work)});
  changed_.notify_one();
  return true;
}

void task_thread::stop() {
  std::deque<item> left;
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    left.swap(waiting_);
  }
  changed_.notify_one();
  if (thread_.joinable()) thread_.join();
}

std::size_t task_thread::waiting() const {
  const std::lock_guard lock(mutex_);
  return waiting_.size();
}

void task_thread::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stopped_ || !waiting_.empty(); });
    if (stopped_) return;
    item next = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    next.run();
    next.run = nullptr;  // destroys what the task holds while the mutex is free
    lock.lock();
    bytes_ -= next.bytes;
  }
}

}  // namespace troupe
