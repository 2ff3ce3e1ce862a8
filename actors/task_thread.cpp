#include "actors/task_thread.hpp"

#include <utility>

namespace troupe {

task_thread::task_thread(std::size_t most_bytes) : most_bytes_(most_bytes), thread_([this] { work(); }) {}

task_thread::~task_thread() {
  stop();
}

void task_thread::run(task work, const std::string& owner) {
  (void)offer(0, std::move(work), owner);
}

bool task_thread::offer(std::size_t bytes, task work, const std::string& owner) {
  const std::lock_guard lock(mutex_);
  if (stopped_) return true;
  if (!has_room(bytes, owner)) return false;
  const auto of_owner = owners_.try_emplace(owner).first;
  auto& [waiting, held] = of_owner->second;
  if (waiting.empty()) turns_.push_back(of_owner);
  waiting.push_back({bytes, std::move(work)});
  held += bytes;
  bytes_ += bytes;
  changed_.notify_one();
  return true;
}

/// Whoever holds nothing may begin, however much it is.
bool task_thread::has_room(std::size_t bytes, const std::string& owner) const {
  if (bytes == 0 || bytes_ == 0) return true;
  if (bytes_ + bytes > most_bytes_) return false;
  const auto known = owners_.find(owner);
  const std::size_t held = known == owners_.end() ? 0 : known->second.bytes;
  return owner.empty() || held == 0 || held + bytes <= most_bytes_ / 2;
}

void task_thread::stop() {
  accounts left;
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    turns_.clear();
    left.swap(owners_);
  }
  changed_.notify_one();
  if (thread_.joinable()) thread_.join();
}

std::size_t task_thread::waiting() const {
  const std::lock_guard lock(mutex_);
  std::size_t count = 0;
  for (const auto& [name, its] : owners_) count += its.waiting.size();
  return count;
}

void task_thread::run_next(std::unique_lock<std::mutex>& lock) {
  const std::string owner = turns_.front()->first;
  auto& waiting = turns_.front()->second.waiting;
  item next = std::move(waiting.front());
  waiting.pop_front();
  if (!waiting.empty()) turns_.push_back(turns_.front());
  turns_.pop_front();
  lock.unlock();
  next.run();
  next.run = nullptr;  // destroys what the task holds while the mutex is free
  lock.lock();
  bytes_ -= next.bytes;
  const auto known = owners_.find(owner);
  if (known == owners_.end()) return;  // stopped meanwhile
  known->second.bytes -= next.bytes;
  if (known->second.waiting.empty()) owners_.erase(known);
}

void task_thread::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stopped_ || !turns_.empty(); });
    if (stopped_) return;
    run_next(lock);
  }
}

}  // namespace troupe
