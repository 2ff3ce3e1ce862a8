// The worker: holds a stage of a replica, on the thread that computes it.
#pragma once
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "actors/interfaces.hpp"
#include "actors/wire.hpp"
#include "actors/workers/hidden_buffers.hpp"
#include "actors/workers/stage_ranks.hpp"
#include "actors/workers/step_frames.hpp"
#include "actors/workers/worker_meter.hpp"
#include "base/last_said.hpp"
#include "base/thread_pool.hpp"
#include "model/arch/preload.hpp"
#include "model/engine/stages/stage.hpp"

namespace troupe {

struct worker_parts {
  wire* links = nullptr;
  workers_head_actor head;
  adapter_fetcher_actor fetcher;
  std::shared_ptr<worker_meter> meter;
  std::shared_ptr<const loaded_model> model;
  int threads = 1;
  device_id device = {};
  rank_settings ranks = {};
  std::shared_ptr<rank_alarm> alarm = std::make_shared<rank_alarm>();
  token_tree_source tokens = {};  ///< for answers with a constraint
  std::function<void(const std::string& why)> on_device_lost = [](const std::string&) {};
  std::string node = {};  ///< its name, for those who hear elsewhere why an adapter cannot be loaded
  /// Told what takes long, what is to be known of how the device computes, and which adapters cannot be loaded.
  std::function<void(const std::string& line)> say = [](const std::string&) {};
  std::chrono::milliseconds reach_patience{10'000};  ///< how long the next stage may take to answer
  step_sizes largest_steps = {};                     ///< for which this process' links have room
  std::function<void(const loaded_model&, std::int64_t first_layer, std::int64_t layers)> preload = troupe::preload;
};

/// What a worker has for one life, and lets go of with it.
struct held_stage {
  start_stage role = {};
  std::unique_ptr<stage_ranks> ranks = {};  ///< if several workers share the stage, which refers to it
  std::unique_ptr<stage> layers = {};
  link_id next = no_link;
  std::optional<seat> lost = {};  ///< the neighbour that was not reached, if that ends the life
  std::deque<run_step> orders = {};
  std::vector<answer_opening> opened_ahead = {};  ///< opened by an order whose rest has not arrived yet
  std::map<step_id, shared_bytes> arrived = {};   ///< hidden states by step, until the step is run
  hidden_buffers buffers = {};

  bool can_run_next() const;
  seat next_seat() const { return {role.stage + 1, role.tensor_rank}; }
  /// Makes the hidden states of a step, or takes those that arrived.
  void fill(float* hidden, step_id step, std::size_t size);
};

/// Runs on a thread of its own. Takes orders of one life at a time and drops messages of other lives, so that nothing
/// sent to or by a fenced worker does any harm.
class worker_state {
 public:
  using handle = worker_actor;
  static constexpr const char* name = "worker";

  worker_state(handle::pointer self, worker_parts parts);
  handle::behavior_type make_behavior();

 private:
  void start(const start_stage& order);
  void make_stage(const start_stage& order, const std::stop_token& stop);
  void check_order(const start_stage& order) const;
  void check_links(const start_stage& order) const;
  void reach_next(const std::string& endpoint, const std::stop_token& stop);
  held_stage* held_in(const replica_life& life);
  void forget();
  void forget_all();
  void take_order(run_step& order);
  void take_hidden(activations& hidden);
  void advance();
  void run_front();
  void run_order(held_stage& held, const run_step& order);
  void fail(const std::string& error);
  /// Runs `work`. Returns what went wrong; empty if nothing did.
  template <class Work>
  std::string fault_of(Work work, const std::string& no_memory);
  void take_adapter(const adapter_ready& ready);
  std::string add_adapter(const adapter_ready& ready);
  void drop(const drop_adapter& order);

  handle::pointer self_;
  worker_parts parts_;
  std::unique_ptr<thread_pool> pool_;

  std::optional<held_stage> held_;
  last_said refused_adapters_;  ///< those for which there was no memory, by digest
};

worker_actor spawn_worker(caf::actor_system& system, worker_parts parts);

}  // namespace troupe
