// A scheduler of one replica with two stages, whose workers, router and supervisor the test plays.
#pragma once
#include "actors/replicas/scheduler.hpp"

#include <thread>
#include <utility>
#include <vector>

#include "actors/wire.hpp"
#include "tests/actors/support.hpp"

namespace troupe::test {

class scheduler : public testing::Test {
 protected:
  scheduler() { start({}); }
  ~scheduler() override { caf::anon_send_exit(actor_, caf::exit_reason::user_shutdown); }

  void start(const batch_scheduler::options& batches) {
    actor_ = spawn_scheduler(system_, {.router = router_.handle(),
                                       .supervisor = supervisor_.handle(),
                                       .adapters = adapters_,
                                       .board = board_,
                                       .replica = replica_id(3),
                                       .batches = batches,
                                       .vocab_size = 96,
                                       .adapter_bytes = 1 << 20,
                                       .unloadable_for = unloadable_for_});
  }
  static replica_life life(std::uint64_t epoch) { return {replica_id(3), epoch_id(epoch)}; }
  void begin_life(std::uint64_t epoch, std::int64_t blocks = 64, int steps_in_flight = 2) {
    tell(actor_, replica_started{life(epoch), {{first_.handle()}, {last_.handle()}}, blocks, steps_in_flight});
    for (routed_request& request : std::exchange(returned_, {})) tell(actor_, std::move(request));
  }
  /// The router's part of it: what comes back goes into the next life.
  void end_life(life_end why = life_end::loss) {
    tell(actor_, replica_stopped{why});
    returned_ = router_.take<requests_returned>().requests;
  }
  adapter_version publish_pricing() {
    const adapter_version pricing(5);
    adapters_->publish({.names = {{"pricing", pricing}}, .versions = {{pricing, {"pricing@1", "", {}, 1000}}}});
    return pricing;
  }
  void ask(std::uint64_t id, std::string_view prompt, std::int64_t tokens = 10, adapter_version adapter = no_adapter,
           std::int32_t answers = 1) {
    routed_request request;
    request.id = request_id(id);
    request.engine.sequence.adapter = adapter;
    request.engine.sequence.answers = answers;
    request.sink = sink_.handle();
    request.engine.sequence.prompt = letters(prompt);
    request.engine.sequence.max_tokens = tokens;
    request.accepted = monotonic_clock().now();
    tell(actor_, std::move(request));
  }
  /// What the last stage would send: this token for every answer.
  static step_done outcome_of(const run_step& order, char token) {
    step_done done;
    done.life = order.life;
    done.outcome.step = order.step.plan.id;
    for (const planned_share& share : order.step.plan.shares)
      for (const sequence_id sequence : order.step.plan.answers_of(share)) {
        const auto at = static_cast<std::int32_t>(done.outcome.tokens.size());
        done.outcome.answers.push_back({sequence, at, 1, 0, 0, false});
        done.outcome.tokens.push_back(token - ' ');
      }
    return done;
  }
  std::vector<token_id> next_tokens() { return sink_.take<token_batch>().answers.at(0).tokens; }

  caf::actor_system_config config_;
  caf::actor_system system_{config_};
  mock<router_actor> router_{system_};
  mock<supervisor_actor> supervisor_{system_};
  mock<worker_actor> first_{system_}, last_{system_};
  mock<sink_actor> sink_{system_};
  std::shared_ptr<adapter_directory> adapters_ = std::make_shared<adapter_directory>();
  std::shared_ptr<status_board> board_ = std::make_shared<status_board>();
  duration unloadable_for_ = std::chrono::minutes(10);
  scheduler_actor actor_;
  std::vector<routed_request> returned_;
};

}  // namespace troupe::test
