#include "cli/cluster/status_watch.hpp"

#include <memory>
#include <stdexcept>
#include <utility>

#include <nlohmann/json.hpp>

namespace troupe {
namespace {

/// How long a head may take to answer.
constexpr auto longest_wait = std::chrono::seconds(3);

}  // namespace

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
  has_news_.take();
  return std::exchange(news_, std::nullopt);
}

void status_watch::run() {
  std::unique_ptr<cluster_client> head;
  std::unique_lock lock(mutex_);
  while (!is_stopping_) {
    lock.unlock();
    auto said = ask(head);
    lock.lock();
    if (said) {
      news_ = std::move(said);
      has_news_.give();
    }
    changed_.wait_for(lock, interval_.load(), [this] { return is_stopping_; });
  }
}

/// Nothing where it does not answer: then the link is given up, and the next call makes another.
std::optional<std::string> status_watch::ask(std::unique_ptr<cluster_client>& head) {
  give_up_at_ = std::chrono::steady_clock::now() + longest_wait;
  try {
    if (!head) head = std::make_unique<cluster_client>(head_, [this] { check(); });
    return head->command("status", {}).dump();
  } catch (const std::exception&) {
    head.reset();
    return std::nullopt;
  }
}

void status_watch::check() {
  if (std::chrono::steady_clock::now() > give_up_at_) throw std::runtime_error("no answer came in time");
  const std::lock_guard lock(mutex_);
  if (is_stopping_) throw std::runtime_error("nobody wants to know any more");
}

}  // namespace troupe
