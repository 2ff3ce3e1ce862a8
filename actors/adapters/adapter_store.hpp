#pragma once
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "actors/adapters/adapter_shelf.hpp"
#include "actors/interfaces.hpp"
#include "actors/replicas/replica_directory.hpp"
#include "actors/status_board.hpp"
#include "actors/wire.hpp"

namespace troupe {

struct adapter_store_parts {
  std::shared_ptr<adapter_shelf> shelf;
  jobs_actor journal;
  wire* links = nullptr;
  std::shared_ptr<const replica_directory> directory;  ///< its workers get a version before it is published
  std::shared_ptr<adapter_directory> adapters;
  std::shared_ptr<status_board> board;
  std::function<void(const std::string& line)> say = [](const std::string&) {};  ///< told what has changed
};

/// The head's adapters: publishes them, sends their files, and shows them to everyone in the directory. On a thread of
/// its own, since it reads and writes files. Nobody sees a change before the journal has it.
class adapter_store_state {
 public:
  using handle = adapter_store_actor;
  static constexpr const char* name = "adapter_store";
  static constexpr duration longest_spread = std::chrono::seconds(5);

  adapter_store_state(handle::pointer self, adapter_store_parts parts);
  handle::behavior_type make_behavior();

 private:
  /// Called when the journal has a change; `error` says what prevented that, or is empty.
  using continuation = std::function<void(const std::string& error)>;
  struct change {
    std::uint64_t ticket = 0;
    adapter_directory::snapshot snapshot;
    adapter_shelf::summary shown;
    std::vector<std::string> news;
    std::vector<continuation> then;
  };

  /// A version that workers are fetching.
  struct spreading {
    std::size_t missing = 0;
    instant until;
    std::function<void()> then;
  };

  void run(const command_call& call);
  void load(const command_call& call);
  void publish(const publish_adapter& asked);
  void spread(const adapter_shelf::candidate& adapter, std::function<void()> then);
  void take_prepared(const adapter_prepared& prepared);
  void end_overdue();
  void finish(command_answer answer, std::function<void(command_answer)> tell_asker);
  std::string carry_out(const client_command& command);
  void find(const find_adapter& wanted);
  bool is_used(adapter_version version) const;
  void save_then(continuation then);
  void save_changes();
  void take_saved(const catalogue_saved& saved);
  void show_files_that_came_back();
  void show(adapter_directory::snapshot published, const adapter_shelf::summary& shown);

  handle::pointer self_;
  adapter_store_parts parts_;
  std::uint64_t shown_files_;                     ///< times_files_were_found() when files were last shown
  std::optional<change> saving_;                  ///< what the journal is writing
  std::vector<continuation> next_;                ///< what follows when the changes after that are written
  std::map<std::uint64_t, spreading> spreading_;  ///< by ticket
  std::uint64_t ticket_ = 0;
  monotonic_clock clock_;
};

adapter_store_actor spawn_adapter_store(caf::actor_system& system, adapter_store_parts parts);

}  // namespace troupe
