#pragma once
#include <map>
#include <mutex>
#include <string>
#include <utility>

namespace troupe {

/// Where actors leave word of themselves for whoever shows it (`troupe status`, the HTTP page): the newest JSON of each
/// section. So nobody has to wait for an actor that is busy. Thread-safe.
class status_board {
 public:
  void post(const std::string& section, std::string json) {
    const std::lock_guard lock(mutex_);
    sections_[section] = std::move(json);
  }
  void remove(const std::string& section) {
    const std::lock_guard lock(mutex_);
    sections_.erase(section);
  }
  /// Empty where nobody posted it.
  std::string read(const std::string& section) const {
    const std::lock_guard lock(mutex_);
    const auto found = sections_.find(section);
    return found == sections_.end() ? std::string() : found->second;
  }
  /// Every section whose name begins so, in order.
  std::map<std::string, std::string> read_all(const std::string& prefix = {}) const {
    const std::lock_guard lock(mutex_);
    std::map<std::string, std::string> found;
    for (auto at = sections_.lower_bound(prefix); at != sections_.end() && at->first.starts_with(prefix); ++at)
      found.insert(*at);
    return found;
  }

 private:
  mutable std::mutex mutex_;
  std::map<std::string, std::string> sections_;
};

}  // namespace troupe
