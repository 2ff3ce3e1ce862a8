// A bus that remembers what it was told, and waits for it.
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

#include "transport/zmq/bus.hpp"

namespace troupe {

inline frame numbered_frame(std::uint64_t number, std::size_t attachment = 0) {
  frame made;
  made.kind = 3;
  made.epoch = 5;
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
                                            [this](link_id from, const std::string& why) { on_closed(from, why); }})) {
    const std::lock_guard lock(mutex_);
    ready_ = bus_.get();
    changed_.notify_all();
  }

  static bus::options listening(const std::string& where = "tcp://127.0.0.1:*") {
    bus::options options;
    options.listen = where;
    return options;
  }

  bus& operator*() { return *bus_; }
  bus* operator->() { return bus_.get(); }

  /// False: not within a minute, which a machine full of compilers may need for what is done in milliseconds elsewhere.
  template <class Done>
  bool wait(Done done) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::minutes(1), [&] { return done(*this); });
  }
  bool wait_frames(std::size_t count) {
    return wait([&](const peer& p) { return p.frames.size() >= count; });
  }
  bool wait_closed(std::size_t count = 1) {
    return wait([&](const peer& p) { return p.closed.size() >= count; });
  }
  bool was_told(const std::string& words) {
    return wait([&](const peer& p) {
      for (const auto& [id, why] : p.closed)
        if (why.find(words) != std::string::npos) return true;
      return false;
    });
  }
  std::vector<std::pair<link_id, std::string>> told() {
    const std::lock_guard lock(mutex_);
    return closed;
  }

  std::vector<std::pair<link_id, frame>> frames;
  std::vector<std::pair<link_id, std::string>> closed;

 private:
  void on_frame(link_id from, frame what) {
    if (echoes_) {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return ready_ != nullptr; });
      lock.unlock();
      ready_->send(from, what);
    }
    const std::lock_guard lock(mutex_);
    frames.emplace_back(from, std::move(what));
    changed_.notify_all();
  }
  void on_closed(link_id from, const std::string& why) {
    const std::lock_guard lock(mutex_);
    closed.emplace_back(from, why);
    changed_.notify_all();
  }

  const bool echoes_;
  bus* ready_ = nullptr;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::unique_ptr<bus> bus_;
};

}  // namespace troupe
