#pragma once
#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>

namespace troupe::detail {

/// Bytes that all clients together may hold, but one address no more than half of them: so nobody alone takes the room
/// of everybody else. Thread-safe.
class byte_budget {
 public:
  explicit byte_budget(std::size_t most) : most_(most) {}

  /// False where there is no room for them.
  bool take(const std::string& client, std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    const auto own = by_client_.find(client);
    const std::size_t held = own == by_client_.end() ? 0 : own->second;
    if (all_ + bytes > most_ || held + bytes > most_ / 2) return false;
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
  const std::size_t most_;
  std::mutex mutex_;
  std::size_t all_ = 0;
  std::unordered_map<std::string, std::size_t> by_client_;
};

/// What one request or answer of a client holds of a budget: given back with it.
class budget_share {
 public:
  budget_share(std::shared_ptr<byte_budget> of, std::string client) : of_(std::move(of)), client_(std::move(client)) {}
  ~budget_share() { hold(0); }
  budget_share(const budget_share&) = delete;
  budget_share& operator=(const budget_share&) = delete;

  /// So many from now on. False where there is no room for more: then it holds what it did.
  bool hold(std::size_t bytes) {
    if (bytes > held_ && !of_->take(client_, bytes - held_)) return false;
    if (bytes < held_) of_->give_back(client_, held_ - bytes);
    held_ = bytes;
    return true;
  }
  std::size_t held() const { return held_; }

 private:
  std::shared_ptr<byte_budget> of_;
  std::string client_;
  std::size_t held_ = 0;
};

}  // namespace troupe::detail
