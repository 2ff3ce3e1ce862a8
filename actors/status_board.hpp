#pragma once
#include <map>
#include <mutex>
#include <string>
#include <utility>

namespace troupe {

/// Where actors post their state for those who show it (`troupe status`, the HTTP page), so that nobody has to wait for
/// a busy actor. Holds the newest JSON of each section. Thread-safe.
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
  /// Empty if nobody has posted it.
  std::string read(const std::string& section) const {
    const std::lock_guard lock(mutex_);
    const auto found = sections_.find(section);
    return found == sections_.end() ? std::string() : found->second;
  }
  /// All sections whose names begin with `prefix`, by name.
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
