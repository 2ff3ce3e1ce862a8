// Makes adapters ready for a worker: fetches missing files from the head, and packs them for the kernels.
#pragma once
#include <deque>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "actors/adapters/adapter_download.hpp"
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
};

/// Handles one adapter at a time, on a thread of its own, so that neither disk nor network delays a step.
class adapter_fetcher_state {
 public:
  using handle = adapter_fetcher_actor;
  static constexpr const char* name = "adapter_fetcher";

  adapter_fetcher_state(handle::pointer self, adapter_fetcher_parts parts);
  handle::behavior_type make_behavior();

 private:
  /// An adapter to make ready. With a ticket no stage needs it yet: it is only prepared.
  struct wanted : load_adapter {
    std::optional<std::uint64_t> ticket;
  };

  void take(wanted order);
  void next();
  void begin(const wanted& order);
  bool load_stored(const wanted& order);
  bool is_changed(const wanted& order);
  void go_on();
  void take_piece(const adapter_piece& piece);
  void load(const wanted& order);
  void fail(const wanted& order, const std::string& error);
  void hand_over(const wanted& order, std::shared_ptr<const lora_adapter> adapter);

  handle::pointer self_;
  adapter_fetcher_parts parts_;
  worker_actor worker_;                 ///< set by begin_fetching
  std::optional<stage_layers> layers_;  ///< empty: all layers
  std::deque<wanted> waiting_;
  /// Adapters that were prepared and not asked for yet, newest last. One that does not fit is packed again when it is
  /// asked for, from the files that are here.
  std::deque<std::pair<std::string, std::shared_ptr<const lora_adapter>>> prepared_;
  std::set<std::string> unchanged_;  ///< digests of stored adapters whose files were read and found right
  std::optional<adapter_download> download_;
  wanted downloaded_;  ///< what download_ fetches
};

adapter_fetcher_actor spawn_adapter_fetcher(caf::actor_system& system, adapter_fetcher_parts parts);

}  // namespace troupe
