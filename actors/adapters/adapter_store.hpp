// The head's adapters: publishes them, sends their files, and shows them to everyone in the directory. On a thread of
// its own, since it reads and writes files. Nobody sees a change before the journal has it.
#pragma once
#include <functional>
#include <memory>
#include <string>

#include "actors/adapters/adapter_shelf.hpp"
#include "actors/interfaces.hpp"
#include "actors/replicas/replica_directory.hpp"
#include "actors/status_board.hpp"
#include "actors/wire.hpp"
#include "base/clock.hpp"

namespace troupe {

struct adapter_store_parts {
  std::shared_ptr<adapter_shelf> shelf;
  jobs_actor jobs;
  wire* links = nullptr;
  std::shared_ptr<const replica_directory> directory;  ///< its workers get a version before it is published
  std::shared_ptr<adapter_directory> adapters;
  std::shared_ptr<status_board> board;
  duration longest_spread = std::chrono::seconds(5);  ///< how long a publication waits for workers
  std::function<void(const std::string& line)> say = [](const std::string&) {};  ///< told what has changed
};

adapter_store_actor spawn_adapter_store(caf::actor_system& system, adapter_store_parts parts);

}  // namespace troupe
