#include "cli/cluster/status_watch.hpp"

#include <stdexcept>
#include <utility>

namespace troupe {

status_watch::status_watch(connect_options head) : head_(std::move(head)), thread_([this] { run(); }) {}

status_watch::~status_watch() {
  {
    const std::lock_guard lock(mutex_);
    is_stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

std::optional<std::string> status_watch::take() {
  const std::lock_guard lock(mutex_);
  return std::exchange(news_, std::nullopt);
}

void status_watch::run() {
  constexpr auto interval = std::chrono::milliseconds(300);
  std::unique_lock lock(mutex_);
  while (!is_stopping_) {
    lock.unlock();
    auto said = ask();
    lock.lock();
    if (said) news_ = std::move(said);
    changed_.wait_for(lock, interval, [this] { return is_stopping_; });
  }
}

/// Nothing where it does not answer.
std::optional<std::string> status_watch::ask() {
  const auto check = [this] {
    const std::lock_guard lock(mutex_);
    if (is_stopping_) throw std::runtime_error("nobody wants to know any more");
  };
  try {
    return cluster_client(head_, check).command("status", "{}");
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

}  // namespace troupe
