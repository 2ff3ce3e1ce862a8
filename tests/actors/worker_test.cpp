#include "actors/worker.hpp"

#include "model/arch/loaded_model.hpp"
#include "model/engine/replica_scheduler.hpp"
#include "tests/actors/support.hpp"

namespace troupe::test {
namespace {

class worker : public testing::Test {
 protected:
  worker() {
    thread_pool pool(1);
    model_ = load_model(golden / "llama", {.quant = {}, .keep = {}, .cache = folder_.path(), .progress = {}}, pool);
    actor_ = spawn_worker(system_, {.model = model_, .kv = kv_kind::f32, .threads = 1}, &links_, head_.handle(),
                          fetcher_.handle(), meter_);
    batch_scheduler::options options;
    options.blocks = 16;
    options.context = 64;
    options.max_batch_tokens = options.max_sequences = 32;
    requests_ = std::make_unique<replica_scheduler>(options, model_->config.vocab_size);
    engine_request request;
    request.what.prompt = {1, 2, 3};
    request.sampling.temperature = 0;
    EXPECT_TRUE(requests_->submit(std::move(request)));
  }
  ~worker() override { tell(actor_, stop_now{}); }

  static replica_life life(std::uint64_t epoch) { return {replica_id(0), epoch_id(epoch)}; }
  start_stage stage_of(std::uint64_t epoch, std::int64_t first = 0, std::int64_t layers = 2) const {
    start_stage what;
    what.life = life(epoch);
    what.first_layer = first;
    what.layers = layers;
    what.blocks = 16;
    what.context = 64;
    what.max_rows = 32;
    return what;
  }
  std::string start(const start_stage& what) {
    tell(actor_, what);
    const auto answer = head_.take<stage_started>();
    EXPECT_EQ(answer.life, what.life);
    return answer.error;
  }
  run_step next_order(std::uint64_t epoch) {
    run_step made;
    made.life = life(epoch);
    EXPECT_TRUE(requests_->plan_step(instant(), made.order));
    return made;
  }
  activations hidden_for(const run_step& order, std::size_t bytes) const {
    auto owner = std::make_shared<std::vector<std::byte>>(bytes);
    const std::span<const std::byte> all(*owner);
    return {order.life, order.order.plan.id, {std::move(owner), all}};
  }

  temp_folder folder_;
  std::shared_ptr<const loaded_model> model_;
  caf::actor_system_config config_;
  caf::actor_system system_{config_};
  wire links_{bus::options{}};  // never started: nobody is reached
  mock<head_actor> head_{system_};
  mock<adapter_fetcher_actor> fetcher_{system_};
  std::shared_ptr<worker_meter> meter_ = std::make_shared<worker_meter>();
  worker_actor actor_;
  std::unique_ptr<replica_scheduler> requests_;
};

TEST_F(worker, runs_the_orders_of_its_life_and_of_no_other) {
  EXPECT_EQ(start(stage_of(2)), "");
  const auto order = next_order(2);
  auto old = order, future = order;
  old.life = life(1);
  future.life = life(3);
  tell(actor_, old);
  tell(actor_, future);
  tell(actor_, order);
  const auto done = head_.take<step_done>();
  EXPECT_EQ(done.life, life(2));
  EXPECT_EQ(done.outcome.tokens.size(), 1u);
  EXPECT_EQ(start(stage_of(4)), "");  // heard after all of these
  EXPECT_EQ(head_.count<step_done>(), 0u);
  EXPECT_EQ(head_.count<stage_failed>(), 0u);
}

TEST_F(worker, forgets_all_when_the_process_is_no_member_any_more) {
  EXPECT_EQ(start(stage_of(2)), "");
  tell(actor_, forget_life{});
  tell(actor_, next_order(2));
  EXPECT_EQ(start(stage_of(3)), "");
  EXPECT_EQ(head_.count<step_done>(), 0u);
}

TEST_F(worker, waits_for_the_hidden_states_of_an_order) {
  EXPECT_EQ(start(stage_of(2, 1, 1)), "");
  const auto order = next_order(2);
  auto old = hidden_for(order, 3 * 64 * sizeof(float));
  old.life = life(1);
  tell(actor_, old);
  tell(actor_, order);
  tell(actor_, hidden_for(order, 4));  // of a size that cannot be: this life is over
  EXPECT_NE(head_.take<stage_failed>().error.find("4 bytes"), std::string::npos);
  EXPECT_EQ(head_.count<step_done>(), 0u);
}

TEST_F(worker, says_why_it_cannot_hold_a_stage) {
  for (const auto& [first, layers] : {std::pair{0, 3}, {2, 1}, {-1, 1}, {0, 0}})
    EXPECT_NE(start(stage_of(2, first, layers)).find("of a model of 2"), std::string::npos);
  auto huge = stage_of(2);
  huge.blocks = std::int64_t{1} << 40;
  EXPECT_NE(start(huge), "");
  huge.blocks = 16;
  huge.max_rows = -1;
  EXPECT_NE(start(huge), "");
  EXPECT_EQ(start(stage_of(3)), "");
}

TEST_F(worker, gives_a_life_up_over_an_order_that_reaches_beyond_its_stage) {
  EXPECT_EQ(start(stage_of(2)), "");
  auto order = next_order(2);
  order.order.plan.rows.at(0).tokens = 1000;
  tell(actor_, order);
  EXPECT_EQ(head_.take<stage_failed>().life, life(2));
  EXPECT_EQ(start(stage_of(3)), "");
}

}  // namespace
}  // namespace troupe::test
