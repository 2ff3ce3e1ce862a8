// A supervisor with nodes that the test plays.
#pragma once
#include "actors/replicas/supervisor.hpp"

#include <algorithm>
#include <cstdint>

#include "actors/workers/stage_ranks.hpp"
#include "actors/workers/worker_meter.hpp"
#include "cluster/launch/machine.hpp"
#include "tests/actors/support.hpp"

namespace troupe::test {

constexpr const char* supervised_cluster = R"(
[cluster]
name = "test"
assemble_seconds = 1
lost_after_ms = 60000
[model]
path = "model"
[[node]]
name = "head"
roles = ["router", "scheduler", "worker"]
)";

/// A head with a mock as its own worker, if it has one, and further nodes that consist of messages only.
class supervisor : public testing::Test {
 protected:
  explicit supervisor(
      const std::string& more_of_the_file = {},
      const std::function<void(supervisor_parts&)>& change = [](supervisor_parts&) {}, bool has_worker = true) {
    supervisor_parts parts;
    parts.config = parse_cluster_config(supervised_cluster + more_of_the_file, "test.toml");
    parts.members.build = "b";
    parts.members.detector.lost_after = parts.members.detector.suspect_after = std::chrono::minutes(1);
    parts.shape = {.layers = 2, .layer_bytes = 1000, .embedding_bytes = 10, .head_bytes = 10, .kv_bytes = 4};
    parts.wanted = {.replicas = 0, .stages = 1, .tensor = 1, .kv_memory = 1 << 20, .min_context = 64};
    parts.batches.context = 64;
    parts.vocab_size = 96;
    parts.kv = kv_kind::i8;
    parts.say = [said = said_](const std::string& line) { said->put(line); };
    parts.links = &links_;
    parts.router = router_.handle();
    parts.directory = directory_;
    parts.adapters = std::make_shared<adapter_directory>();
    parts.board = board_;
    change(parts);
    actor_ = spawn_supervisor(system_, std::move(parts));
    std::optional<local_worker> own;
    if (has_worker) own = local_worker{worker_.handle(), hello("head", 1), std::make_shared<rank_alarm>(), meter_};
    tell(actor_, begin_cluster{training_.handle(), own});
  }
  ~supervisor() override {
    tell(actor_, stop_now{});
    for (const auto& [id, scheduler] : schedulers_) caf::anon_send_exit(scheduler, caf::exit_reason::user_shutdown);
  }

  static node_hello hello(const std::string& name, std::uint64_t incarnation) {
    node_hello made;
    made.name = name;
    made.incarnation = incarnation_id(incarnation);
    made.pid = 1;
    made.host = "127.0.0.1";
    made.machine = pid_space();
    made.endpoint = "tcp://127.0.0.1:1";
    made.roles = {"worker"};
    made.build = "b";
    made.threads = 1;
    made.processors = 1;
    made.memory_bytes = 1 << 30;
    made.speed = 1;
    return made;
  }
  void join(const std::string& name, std::uint64_t incarnation) {
    tell(actor_, incoming<join_cluster>{link_id(incarnation), 0, {hello(name, incarnation)}});
  }
  void leave(std::uint64_t incarnation) {
    tell(actor_, incoming<leave_cluster>{link_id(incarnation), 0, {incarnation_id(incarnation)}});
  }
  void drain(
      const std::string& name, std::function<void(command_answer)> answer = [](const command_answer&) {}) {
    tell(actor_, command_call{{"drain", json{{"name", name}}.dump()}, std::move(answer)});
  }
  void started(replica_life life) { tell(actor_, stage_started{life, 0, 0, {}, {}}); }
  /// The scheduler of the next replica that is made.
  scheduler_actor next_replica() {
    const auto added = router_.take<replica_added>();
    return schedulers_[added.replica] = added.scheduler;
  }
  void wait_until_ready(std::uint32_t replica, bool ready) {
    for (;;)
      if (const auto state = router_.take<replica_state>();
          state.replica == replica_id(replica) && state.ready == ready)
        return;
  }
  /// Waits until the board says this, or does not say it any more.
  bool comes_to_say(const std::string& text, bool says, const std::string& section = "replicas") const {
    return is_soon([&] { return (board_->read(section).find(text) != std::string::npos) == says; });
  }
  /// The life with this number. All replicas' lives are counted together.
  replica_life life(std::uint32_t replica, std::uint64_t number) const {
    return {replica_id(replica), epoch_id((std::uint64_t{1} << 32) + number)};
  }
  void ask(const scheduler_actor& scheduler, std::uint64_t id = 7) {
    routed_request request;
    request.id = request_id(id);
    request.sink = sink_.handle();
    request.engine.sequence.prompt = letters("AB");
    tell(scheduler, std::move(request));
  }

  std::shared_ptr<inbox> said_ = std::make_shared<inbox>();  ///< lines for the head's log
  caf::actor_system_config config_;
  caf::actor_system system_{config_};
  wire links_{bus::options{}};
  std::shared_ptr<worker_meter> meter_ = std::make_shared<worker_meter>();  ///< of the head's own worker
  mock<worker_actor> worker_{system_};
  mock<router_actor> router_{system_};
  mock<sink_actor> sink_{system_};
  mock<training_desk_actor> training_{system_};
  std::shared_ptr<replica_directory> directory_ = std::make_shared<replica_directory>();
  std::shared_ptr<status_board> board_ = std::make_shared<status_board>();
  std::map<replica_id, scheduler_actor> schedulers_;
  supervisor_actor actor_;
};

}  // namespace troupe::test
