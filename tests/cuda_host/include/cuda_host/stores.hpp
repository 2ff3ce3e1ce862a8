// What a thread has the copy engine take from shared memory to the device's memory: as late as it may be.
#pragma once
#include <cuda_host/fibers.hpp>

#include <cstddef>
#include <utility>
#include <vector>

namespace cuda_host {

class late_stores {
 public:
  void start(const shared_store& order) { open_.push_back({order, {}}); }
  void close_group() {
    for (store& each : open_) closed_.push_back(std::move(each));
    open_.clear();
  }
  void wait_until_read() {
    for (store& each : closed_) each.read();
  }
  void wait_until_stored() {
    for (store& each : closed_) each.put();
    closed_.clear();
  }
  /// Whether shared memory may go: the rest needs nothing from it, and is stored before the kernel ends.
  bool end() {
    bool all_are_read = open_.empty();
    for (const store& each : closed_) all_are_read &= !each.taken.empty();
    if (all_are_read) wait_until_stored();
    forget();
    return all_are_read;
  }
  void forget() {
    open_.clear();
    closed_.clear();
  }

 private:
  struct store {
    shared_store order;
    std::vector<std::byte> taken;

    void read() {
      if (taken.empty()) taken.assign(order.from, order.from + order.bytes);
    }
    void put() {
      read();
      order.store(taken.data());
    }
  };
  std::vector<store> open_, closed_;
};

}  // namespace cuda_host
