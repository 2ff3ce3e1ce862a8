// Which adapters' sequences run, and how long the others have waited.
//
// Goal: at most `limit` adapters among the running sequences, and a line of those that wait, longest first, so that the
// scheduler can see whose turn is overdue. Sequences without an adapter need no slot. Non-goal: loading and unloading.
#pragma once
#include <cstdint>
#include <map>
#include <unordered_map>
#include <utility>

#include "model/engine/scheduling/ids.hpp"

namespace troupe::detail {

struct adapter_use {
  adapter_version adapter;
  std::int32_t running = 0;
  std::int32_t waiting = 0;
  bool claimed = false;     ///< one of its waiting sequences is urgent
  std::uint64_t since = 0;  ///< the step at which it began to wait with none running
  bool in_line = false;
};

class adapter_slots {
 public:
  explicit adapter_slots(std::int32_t limit) : limit_(limit) {}

  /// A sequence begins to wait. The use lives until no sequence waits or runs any more.
  adapter_use& wait(adapter_version adapter, std::uint64_t step);
  void stop_waiting(adapter_use& use, std::uint64_t step);
  void start(adapter_use& use, std::uint64_t step);
  void stop_running(adapter_use& use, std::uint64_t step);
  void set_claimed(adapter_use& use, bool claimed, std::uint64_t step);

  bool can_start(const adapter_use& use) const {
    return use.adapter == no_adapter || use.running > 0 || taken_ < limit_;
  }
  /// The adapter that waits longest, if that is for `patience` steps and no sequence of it is urgent; else nullptr.
  adapter_use* overdue(std::uint64_t step, std::uint64_t patience) const;

  bool is_running(adapter_version adapter) const;
  bool is_known(adapter_version adapter) const { return uses_.contains(adapter); }
  /// Every adapter that is waited for or runs.
  template <class Visit>
  void visit(Visit visit) const {
    for (const auto& [adapter, use] : uses_)
      if (adapter != no_adapter) visit(use);
  }
  std::size_t known() const { return uses_.size(); }  ///< for tests

 private:
  void settle(adapter_use& use, std::uint64_t step);

  std::int32_t limit_;
  std::int32_t taken_ = 0;
  std::unordered_map<adapter_version, adapter_use> uses_;
  std::map<std::pair<std::uint64_t, adapter_version>, adapter_use*> line_;
};

}  // namespace troupe::detail
