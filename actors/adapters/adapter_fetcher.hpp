// Makes adapters ready for a worker: fetches missing files from the head, and packs them for the kernels. One adapter
// at a time, on a thread of its own, so that neither disk nor network delays a step.
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "actors/interfaces.hpp"
#include "model/arch/loaded_model.hpp"

namespace troupe {

struct adapter_fetcher_parts {
  workers_head_actor head;
  std::shared_ptr<const loaded_model> model;
  std::filesystem::path store;  ///< STORE/<sha256>/ holds an adapter's files; the head of the same machine shares it
  std::uint64_t most_stored = std::uint64_t{64} << 30;  ///< bytes of fetched files; the newest adapter always stays
  std::size_t most_prepared = 64 << 20;                 ///< bytes of packed adapters that no stage has asked for yet
  bool can_fetch = true;  ///< false in the head's own process: what is not in its store is nowhere
  std::string node;       ///< its name, for those who hear elsewhere why an adapter cannot be loaded
  std::function<void(const std::string& line)> say = [](const std::string&) {};  ///< to this node's log
};

adapter_fetcher_actor spawn_adapter_fetcher(caf::actor_system& system, adapter_fetcher_parts parts);

}  // namespace troupe
