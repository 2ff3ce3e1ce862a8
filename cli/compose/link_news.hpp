#pragma once
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "base/last_said.hpp"

namespace troupe {

/// Says why links were refused or lost, but nothing twice in a row, since a process that is refused tries again and
/// again. Thread-safe.
inline std::function<void(const std::string& why)> said_once(std::function<void(const std::string& line)> say) {
  struct memory {
    std::mutex mutex;
    last_said last;
  };
  return [say = std::move(say), known = std::make_shared<memory>()](const std::string& why) {
    const std::lock_guard lock(known->mutex);
    if (known->last.is_news("", why)) say(why);
  };
}

}  // namespace troupe
