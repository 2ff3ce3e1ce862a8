#include "bench/adapter_loader.hpp"

#include <exception>
#include <utility>

#include <fmt/format.h>

namespace troupe::bench {

adapter_loader::adapter_loader(adapter_residency::options chosen, opener open)
    : residency_(chosen), open_(std::move(open)), thread_([this] { read_on(); }) {}

adapter_loader::~adapter_loader() {
  {
    const std::scoped_lock lock(mutex_);
    stopping_ = true;
  }
  wanted_.notify_one();
  thread_.join();
}

void adapter_loader::exchange(const std::function<bool(adapter_version)>& is_pinned, const changes& owner) {
  for (arrival& arrived : arrivals()) take(std::move(arrived), owner);
  const adapter_residency::moves& moves = residency_.turn(is_pinned);
  for (const adapter_version version : moves.drop) owner.remove(version);
  if (moves.load.empty()) return;
  under_way_ += moves.load.size();
  {
    const std::scoped_lock lock(mutex_);
    to_read_.insert(to_read_.end(), moves.load.begin(), moves.load.end());
  }
  wanted_.notify_one();
}

void adapter_loader::take(arrival arrived, const changes& owner) {
  --under_way_;
  const std::int64_t declared = residency_.bytes_of(arrived.version);
  if (arrived.adapter && static_cast<std::int64_t>(arrived.adapter->bytes()) > declared) {
    arrived.why = fmt::format("it takes {} bytes of memory, and {} were declared", arrived.adapter->bytes(), declared);
    arrived.adapter = nullptr;
  }
  if (arrived.adapter) {
    residency_.loaded(arrived.version);
    owner.add(arrived.version, std::move(arrived.adapter));
  } else {
    owner.failed(arrived.version, arrived.why);
    residency_.failed(arrived.version, std::move(arrived.why));
  }
}

std::vector<adapter_loader::arrival> adapter_loader::arrivals() {
  if (under_way_ == 0) return {};
  const std::scoped_lock lock(mutex_);
  return std::exchange(read_, {});
}

bool adapter_loader::wait() {
  if (under_way_ == 0) return residency_.is_anybody_waiting();
  std::unique_lock lock(mutex_);
  arrived_.wait(lock, [&] { return !read_.empty(); });
  return true;
}

void adapter_loader::read_on() {
  std::unique_lock lock(mutex_);
  for (;;) {
    wanted_.wait(lock, [&] { return stopping_ || !to_read_.empty(); });
    if (stopping_) return;
    const adapter_version version = to_read_.front();
    to_read_.pop_front();
    lock.unlock();
    arrival arrived = read(version);
    lock.lock();
    read_.push_back(std::move(arrived));
    arrived_.notify_one();
  }
}

adapter_loader::arrival adapter_loader::read(adapter_version version) const {
  try {
    auto adapter = open_(version);
    if (!adapter) return {version, nullptr, "there is no such adapter"};
    return {version, std::move(adapter), {}};
  } catch (const std::exception& problem) {
    return {version, nullptr, problem.what()};
  }
}

}  // namespace troupe::bench
