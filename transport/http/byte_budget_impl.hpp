#pragma once
#include <cstddef>
#include <mutex>
#include <string>
#include <unordered_map>

namespace troupe::detail {

/// Bytes that all clients together may hold, but one address no more than half of them: so nobody alone takes the room
/// of everybody else. Thread-safe.
class byte_budget {
 public:
  /// False where there is no room for them.
  bool take(const std::string& client, std::size_t bytes, std::size_t most) {
    const std::lock_guard lock(mutex_);
    const auto own = by_client_.find(client);
    const std::size_t held = own == by_client_.end() ? 0 : own->second;
    if (all_ + bytes > most || held + bytes > most / 2) return false;
    all_ += bytes;
    by_client_[client] = held + bytes;
    return true;
  }
  void give_back(const std::string& client, std::size_t bytes) {
    if (bytes == 0) return;
    const std::lock_guard lock(mutex_);
    all_ -= bytes;
    const auto own = by_client_.find(client);
    if ((own->second -= bytes) == 0) by_client_.erase(own);
  }

 private:
  std::mutex mutex_;
  std::size_t all_ = 0;
  std::unordered_map<std::string, std::size_t> by_client_;
};

}  // namespace troupe::detail
