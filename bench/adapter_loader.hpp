// Adapters come and go while an engine runs: adapter_residency decides, a thread of its own reads.
//
// Goals: the engine's thread never waits for a disk; the memory of what goes is given back before what comes takes
// some. Non-goals: where adapters lie and what they are called: the caller's `open` knows.
//
// Everything is called on the engine's thread; `open` runs on the loader's.
#pragma once
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "model/engine/scheduling/adapter_residency.hpp"
#include "model/lora/adapter.hpp"

namespace troupe::bench {

class adapter_loader {
 public:
  /// An adapter ready to run; throws input_error where there is none.
  using opener = std::function<std::shared_ptr<const lora_adapter>(adapter_version)>;

  adapter_loader(adapter_residency::options chosen, opener open);
  /// Waits for the adapter that is being read.
  ~adapter_loader();
  adapter_loader(const adapter_loader&) = delete;
  adapter_loader& operator=(const adapter_loader&) = delete;

  [[nodiscard]] std::optional<adapter_too_large> declare(adapter_version version, std::int64_t bytes) {
    return residency_.declare(version, bytes);
  }
  /// For the scheduler's hooks of these names.
  bool is_known(adapter_version version) const { return residency_.is_declared(version); }
  bool is_ready(adapter_version version) { return residency_.is_ready(version); }

  /// What the owner of the engine does with changes. A sequence whose adapter failed will never start.
  struct changes {
    std::function<void(adapter_version, std::shared_ptr<const lora_adapter>)> add;
    std::function<void(adapter_version)> remove;
    std::function<void(adapter_version, const std::string& why)> failed;
  };
  /// Between two steps: what has come is added, what goes is removed, and what is wanted next will be read.
  void exchange(const std::function<bool(adapter_version)>& is_pinned, const changes& owner);
  /// For a caller with nothing else to do: until the next exchange has something to do. False where nothing is wanted.
  bool wait();

  const adapter_residency& residency() const { return residency_; }

 private:
  struct arrival {
    adapter_version version;
    std::shared_ptr<const lora_adapter> adapter;  ///< nullptr: it failed
    std::string why;
  };

  void take(arrival arrived, const changes& owner);
  std::vector<arrival> arrivals();
  void read_on();
  arrival read(adapter_version version) const;

  adapter_residency residency_;
  opener open_;
  std::size_t under_way_ = 0;  ///< asked for and not yet taken

  std::mutex mutex_;  ///< of what follows
  std::condition_variable wanted_, arrived_;
  std::deque<adapter_version> to_read_;
  std::vector<arrival> read_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace troupe::bench
