#include "transport/zmq/inquiries.hpp"

#include <deque>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

namespace troupe::detail {

struct inquiries::desk {
  explicit desk(int most) : at_once(most) {}

  const int at_once;
  std::mutex mutex;  ///< no other is taken under it
  std::deque<question> waiting;
  int asking = 0;  ///< threads that have no answer yet

  std::mutex taking;  ///< before any that a taker of answers takes
  bool ended = false;

  bool may_begin() const { return !waiting.empty() && asking < at_once; }

  std::optional<question> next() {
    const std::lock_guard lock(mutex);
    if (!may_begin()) return std::nullopt;
    question first = std::move(waiting.front());
    waiting.pop_front();
    ++asking;
    return first;
  }

  void ask(const question& asked) {
    const answer take = asked();
    {
      const std::lock_guard lock(mutex);
      --asking;
    }
    const std::lock_guard lock(taking);
    if (!ended) take();
  }
};

inquiries::inquiries(int at_once) : desk_(std::make_shared<desk>(at_once)) {}

void inquiries::ask(question asked) {
  const std::lock_guard lock(desk_->mutex);
  desk_->waiting.push_back(std::move(asked));
}

bool inquiries::may_begin() const {
  const std::lock_guard lock(desk_->mutex);
  return desk_->may_begin();
}

void inquiries::begin() {
  const auto next = desk_->next();
  if (!next) return;
  try {
    std::thread([asked = *next, own = desk_] { own->ask(asked); }).detach();
  } catch (const std::system_error&) {  // the machine has no more threads
    desk_->ask(*next);
  }
}

void inquiries::end() {
  const std::lock_guard lock(desk_->taking);
  desk_->ended = true;
}

}  // namespace troupe::detail
