// A bus that remembers what it received, and waits for it.
#pragma once
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "tests/base/free_port.hpp"
#include "transport/zmq/bus.hpp"

namespace troupe {

inline frame numbered_frame(std::uint64_t number, std::size_t attachment = 0) {
  frame made;
  made.kind = 3;
  made.correlation = number;
  made.body.assign(number % 50, static_cast<std::byte>(number));
  if (attachment > 0) {
    auto owner = std::make_shared<std::vector<std::byte>>(attachment, static_cast<std::byte>(number));
    const std::span<const std::byte> bytes(*owner);
    made.attachment = {std::move(owner), bytes};
  }
  return made;
}

class peer {
 public:
  explicit peer(bus::options options = {}, bool echoes = false)
      : echoes_(echoes),
        bus_(std::make_unique<bus>(
            std::move(options), bus::events{[this](link_id from, frame what) { on_frame(from, std::move(what)); },
                                            [this](link_id from, const link_end& end) { on_closed(from, end.why); }})) {
    const std::lock_guard lock(mutex_);
    ready_ = bus_.get();
    changed_.notify_all();
  }

  static bus::options listening(const std::string& where = "tcp://127.0.0.1:0") {
    bus::options options;
    options.listen = where;
    return options;
  }

  bus& operator*() { return *bus_; }
  bus* operator->() { return bus_.get(); }

  bool wait_frames(std::size_t count) {
    return wait([&] { return frames_.size() >= count; });
  }
  bool wait_closed(std::size_t count = 1) {
    return wait([&] { return told_.size() >= count; });
  }
  bool was_told(const std::string& words) {
    return wait([&] {
      for (const auto& [id, why] : told_)
        if (why.find(words) != std::string::npos) return true;
      return false;
    });
  }

  /// All frames so far. Copies, since more may come at any time.
  std::vector<std::pair<link_id, frame>> frames() const {
    const std::lock_guard lock(mutex_);
    return frames_;
  }
  std::vector<std::pair<link_id, std::string>> told() const {
    const std::lock_guard lock(mutex_);
    return told_;
  }

 private:
  /// Returns false after a minute. Everything here takes milliseconds, but a machine full of compilers may be slow.
  template <class Done>
  bool wait(Done done) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::minutes(1), done);
  }
  void on_frame(link_id from, frame what) {
    if (echoes_) {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return ready_ != nullptr; });
      lock.unlock();
      ready_->send(from, what);
    }
    const std::lock_guard lock(mutex_);
    frames_.emplace_back(from, std::move(what));
    changed_.notify_all();
  }
  void on_closed(link_id from, const std::string& why) {
    const std::lock_guard lock(mutex_);
    told_.emplace_back(from, why);
    changed_.notify_all();
  }

  const bool echoes_;
  bus* ready_ = nullptr;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::pair<link_id, frame>> frames_;
  std::vector<std::pair<link_id, std::string>> told_;
  std::unique_ptr<bus> bus_;
};

/// Where nobody listens so far.
inline std::string nobodys_address() {
  return "tcp://127.0.0.1:" + std::to_string(test::free_port());
}

}  // namespace troupe
