#include "actors/workers/worker.hpp"

#include <future>

#include "base/device_lost.hpp"
#include "cluster/config/config.hpp"
#include "model/arch/loaded_model.hpp"
#include "model/engine/replica_scheduler.hpp"
#include "tests/actors/support.hpp"
#include "tests/transport/zmq/peer.hpp"

namespace troupe::test {
namespace {

class worker : public testing::Test {
 protected:
  worker() {
    thread_pool pool(1);
    model_ = load_model(golden / "llama", {.quant = {}, .keep = {}, .cache = folder_.path(), .progress = {}}, pool);
    actor_ = spawn_worker(system_, parts_for(head_));
    batch_scheduler::options options;
    options.blocks = 16;
    options.context = 64;
    options.max_batch_tokens = options.max_sequences = 32;
    requests_ = std::make_unique<replica_scheduler>(options, model_->config.vocab_size);
    engine_request request;
    request.sequence.prompt = {1, 2, 3};
    request.sampling.temperature = 0;
    EXPECT_TRUE(requests_->submit(std::move(request)));
  }
  ~worker() override { tell(actor_, stop_now{}); }

  worker_parts parts_for(const mock<workers_head_actor>& head) {
    return {.links = &links_, .head = head.handle(), .fetcher = fetcher_.handle(), .meter = meter_, .model = model_};
  }
  static replica_life life(std::uint64_t epoch) { return {replica_id(0), epoch_id(epoch)}; }
  start_stage stage_of(std::uint64_t epoch, std::int64_t first = 0, std::int64_t layers = 2) const {
    start_stage what;
    what.life = life(epoch);
    what.first_layer = first;
    what.layers = layers;
    what.blocks = 16;
    what.context = 64;
    what.max_rows = what.max_sequences = what.states = 32;
    what.kv = kv_kind::f32;
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
    EXPECT_TRUE(requests_->plan_step(instant(), made.step));
    return made;
  }
  static run_step next_order_like(const run_step& order, std::uint64_t epoch) {
    run_step made = order;
    made.life = life(epoch);
    return made;
  }
  /// Of one stage, to the next.
  static std::size_t hidden_bytes_of(const run_step& order) {
    constexpr std::size_t stride = 64;
    return order.step.plan.tokens.size() * stride * sizeof(float);
  }
  activations hidden_for(const run_step& order, std::size_t bytes) const {
    auto owner = std::make_shared<std::vector<std::byte>>(bytes);
    const std::span<const std::byte> all(*owner);
    return {order.life, order.step.plan.id, {std::move(owner), all}};
  }

  temp_folder folder_;
  std::shared_ptr<const loaded_model> model_;
  caf::actor_system_config config_;
  caf::actor_system system_{config_};
  wire links_{bus::options{}};  // never started: nobody is reached
  mock<workers_head_actor> head_{system_};
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

TEST_F(worker, takes_nothing_of_one_life_into_the_next) {
  const auto order = next_order(2), next = next_order_like(order, 3);
  const std::size_t bytes = hidden_bytes_of(order);
  EXPECT_EQ(start(stage_of(2, 1, 1)), "");
  tell(actor_, order);  // waits for its hidden states
  EXPECT_EQ(start(stage_of(3, 1, 1)), "");
  tell(actor_, hidden_for(next, bytes));
  tell(actor_, next);
  EXPECT_EQ(head_.take<step_done>().life, life(3)) << "nothing else goes before it";

  EXPECT_EQ(start(stage_of(4, 1, 1)), "");
  tell(actor_, hidden_for(next_order_like(order, 4), bytes));  // wait for their order
  EXPECT_EQ(start(stage_of(5, 1, 1)), "");
  tell(actor_, next_order_like(order, 5));  // a step of the same number
  EXPECT_EQ(start(stage_of(6, 1, 1)), "");
  run_step part{life(6), {}, true};
  part.step.opened = order.step.opened;
  tell(actor_, part);
  EXPECT_EQ(start(stage_of(7, 1, 1)), "");
  auto without_openings = next_order_like(order, 7);
  without_openings.step.opened.clear();
  tell(actor_, without_openings);
  tell(actor_, hidden_for(without_openings, bytes));
  const step_done done = head_.take<step_done>();
  EXPECT_EQ(done.life, life(7)) << "none of the orders before was carried out";
  EXPECT_TRUE(done.outcome.tokens.empty()) << "it knows nothing of the answer";
}

TEST_F(worker, counts_what_it_computes) {
  bool was_busy = false;
  worker_parts parts = parts_for(head_);
  parts.tokens = [&]() -> std::shared_ptr<const token_tree> {
    was_busy = meter_->is_busy();
    throw device_lost("it is gone");
  };
  tell(actor_, stop_now{});
  actor_ = spawn_worker(system_, std::move(parts));
  EXPECT_EQ(start(stage_of(2)), "");
  const auto order = next_order(2);
  tell(actor_, order);
  (void)head_.take<step_done>();
  EXPECT_EQ(start(stage_of(3)), "");  // heard after the step
  EXPECT_EQ(meter_->steps, 1u);
  EXPECT_EQ(meter_->rows, order.step.plan.tokens.size());
  EXPECT_FALSE(meter_->is_busy());
  EXPECT_GT(meter_->busy_ns, 0);
  engine_request request;
  request.sequence.prompt = {4, 5};
  request.sampling.constraint.kind = constraint_kind::json_object;  // what needs the tokens
  EXPECT_TRUE(requests_->submit(std::move(request)));
  tell(actor_, next_order(3));
  (void)head_.take<stage_failed>();
  EXPECT_TRUE(was_busy);
}

TEST_F(worker, has_adapters_made_ready_for_its_layers) {
  EXPECT_EQ(start(stage_of(2, 1, 1)), "");
  (void)fetcher_.take<stage_ended>();  // what was before
  EXPECT_EQ(fetcher_.take<stage_layers>().first, 1);
  tell(actor_, prepare_adapter{7, "pricing", "", {}});
  EXPECT_EQ(fetcher_.take<prepare_adapter>().ticket, 7u);
  load_adapter order{life(1), adapter_version(5), "pricing@1", "", {}};
  tell(actor_, order);  // of an earlier life
  order.life = life(2);
  tell(actor_, order);
  EXPECT_EQ(fetcher_.take<load_adapter>().life, life(2));

  const auto adapter =
      std::make_shared<const lora_adapter>(read_adapter(golden / "llama" / "adapter", model_->config), 2);
  load_adapter old = order;
  old.life = life(1);
  tell(actor_, adapter_ready{old, adapter, {}});
  tell(actor_, adapter_ready{order, nullptr, "the disk is full"});
  auto answer = head_.take<adapter_loaded>();
  EXPECT_EQ(answer.life, life(2));
  EXPECT_EQ(answer.version, adapter_version(5));
  EXPECT_EQ(answer.error, "the disk is full");
  tell(actor_, adapter_ready{order, adapter, {}});
  EXPECT_EQ(head_.take<adapter_loaded>().error, "");
  tell(actor_, drop_adapter{life(1), adapter_version(5)});
  auto with = next_order(2);
  with.step.plan.shares.at(0).adapter = adapter_version(5);
  tell(actor_, with);
  tell(actor_, hidden_for(with, hidden_bytes_of(with)));
  EXPECT_EQ(head_.take<step_done>().life, life(2));
  EXPECT_EQ(head_.count<adapter_loaded>(), 0u);
  EXPECT_EQ(fetcher_.count<load_adapter>(), 0u);

  tell(actor_, drop_adapter{life(2), adapter_version(5)});
  with.step.opened.clear();
  tell(actor_, with);
  tell(actor_, hidden_for(with, hidden_bytes_of(with)));
  EXPECT_EQ(head_.take<stage_failed>().life, life(2)) << "it has none any more";
  (void)fetcher_.take<stage_ended>();
  EXPECT_EQ(fetcher_.count<forget_life>(), 0u) << "what it prepares for no stage goes on";
}

TEST_F(worker, says_once_that_it_gives_a_life_up) {
  EXPECT_EQ(start(stage_of(2, 1, 1)), "");
  const auto order = next_order(2);
  for (int i = 0; i < 2; ++i) {
    tell(actor_, order);
    tell(actor_, hidden_for(order, hidden_bytes_of(order) + 4));  // too many
  }
  EXPECT_EQ(head_.take<stage_failed>().life, life(2));
  EXPECT_EQ(start(stage_of(3, 1, 1)), "");
  EXPECT_EQ(head_.count<stage_failed>(), 0u);
}

TEST_F(worker, keeps_hidden_states_until_their_step_has_run) {
  constexpr int most = scheduler_settings::most_steps_in_flight;
  EXPECT_EQ(start(stage_of(2, 1, 1)), "");
  auto order = next_order(2);
  const auto bytes = hidden_bytes_of(order);
  for (int i = 0; i < most + 2; ++i) {  // one after the other
    tell(actor_, hidden_for(order, bytes));
    tell(actor_, order);
    EXPECT_EQ(head_.take<step_done>().outcome.step, order.step.plan.id);
    order.step.plan.id.value += 1;
    order.step.opened.clear();
  }
  for (int i = 0; i <= most; ++i) {  // and without orders
    tell(actor_, hidden_for(order, bytes));
    order.step.plan.id.value += 1;
  }
  EXPECT_EQ(head_.take<stage_failed>().error, "hidden states pile up");
}

TEST_F(worker, says_that_a_step_is_ending_if_it_can_go_on_by_itself) {
  EXPECT_EQ(start(stage_of(2)), "");
  const auto order = next_order(2);
  tell(actor_, order);
  EXPECT_EQ(head_.take<step_ending>().step, order.step.plan.id);
  run_step next;
  next.life = life(2);
  ASSERT_TRUE(requests_->plan_ahead(instant(), next.step));
  tell(actor_, next);
  for (int i = 0; i < 2; ++i) EXPECT_EQ(head_.take<step_done>().outcome.tokens.size(), 1u);
}

TEST_F(worker, does_not_say_so_if_it_guesses_or_has_not_all_layers) {
  auto guessing = stage_of(2);
  guessing.lookup_tokens = 2;
  EXPECT_EQ(start(guessing), "");
  const auto order = next_order(2);
  tell(actor_, order);
  (void)head_.take<step_done>();
  EXPECT_EQ(start(stage_of(3, 1, 1)), "");
  auto of_last = order;
  of_last.life = life(3);
  tell(actor_, hidden_for(of_last, hidden_bytes_of(of_last)));
  tell(actor_, of_last);
  EXPECT_EQ(start(stage_of(4)), "");  // heard after all of these
  EXPECT_EQ(head_.count<step_ending>(), 0u);
}

TEST_F(worker, takes_an_order_that_comes_in_parts) {
  EXPECT_EQ(start(stage_of(2)), "");
  auto order = next_order(2);
  run_step part{order.life, {}, true};
  part.step.opened = std::exchange(order.step.opened, {});
  ASSERT_EQ(part.step.opened.size(), 1u);
  auto old = part;
  old.life = life(1);
  old.step.opened[0].text.clear();
  tell(actor_, part);
  tell(actor_, old);
  tell(actor_, order);
  EXPECT_EQ(head_.take<step_done>().outcome.tokens.size(), 1u);
  EXPECT_EQ(head_.count<stage_failed>(), 0u);
}

TEST_F(worker, forgets_all_when_the_process_is_no_member_any_more) {
  EXPECT_EQ(start(stage_of(2)), "");
  tell(actor_, forget_life{});
  (void)fetcher_.take<forget_life>();
  tell(actor_, next_order(2));
  EXPECT_EQ(start(stage_of(3)), "");
  EXPECT_EQ(head_.count<step_done>(), 0u);
}

TEST_F(worker, holds_keys_and_values_as_the_head_says) {
  engine_request request;
  request.sequence.prompt = {4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  request.sampling.temperature = 0;
  request.sampling.logprobs = 2;
  EXPECT_TRUE(requests_->submit(std::move(request)));
  run_step order = next_order(1);
  const auto score_in = [&](std::uint64_t epoch, kv_kind kv) {
    start_stage what = stage_of(epoch);
    what.kv = kv;
    EXPECT_EQ(start(what), "");
    order.life = life(epoch);
    tell(actor_, order);
    const auto details = head_.take<step_done>().outcome.details;
    return details.empty() ? std::nullopt : details.back().logprob;
  };
  const auto exact = score_in(2, kv_kind::f32), rounded = score_in(3, kv_kind::i8);
  EXPECT_TRUE(exact && rounded);
  EXPECT_NE(exact, rounded);
  EXPECT_EQ(score_in(4, kv_kind::f32), exact);
}

TEST_F(worker, has_room_for_more_rows_in_a_life_that_has_more) {
  auto small = stage_of(2);
  small.max_rows = 4;
  EXPECT_EQ(start(small), "");
  tell(actor_, next_order(2));
  (void)head_.take<step_done>();

  batch_scheduler::options options;
  options.blocks = 256;
  options.context = 64;
  options.max_batch_tokens = 4096;
  requests_ = std::make_unique<replica_scheduler>(options, model_->config.vocab_size);
  for (int i = 0; i < 64; ++i) {
    engine_request request;
    request.sequence.prompt.assign(60, i);
    request.sampling.temperature = 0;
    EXPECT_TRUE(requests_->submit(std::move(request)));
  }
  auto large = stage_of(3);
  large.blocks = 256;
  large.max_rows = 4096;
  large.max_sequences = large.states = 64;
  EXPECT_EQ(start(large), "");
  const auto order = next_order(3);
  EXPECT_GT(order.step.plan.tokens.size(), 3000u);
  tell(actor_, order);
  EXPECT_GT(head_.take<step_done>().outcome.tokens.size(), 50u);
}

TEST_F(worker, waits_for_the_hidden_states_of_an_order) {
  EXPECT_EQ(start(stage_of(2, 1, 1)), "");
  const auto order = next_order(2);
  auto old = hidden_for(order, hidden_bytes_of(order));
  old.life = life(1);
  tell(actor_, old);
  tell(actor_, order);
  tell(actor_, hidden_for(order, 4));  // of a size that cannot be: this life is over
  EXPECT_NE(head_.take<stage_failed>().error.find("4 bytes"), std::string::npos);
  EXPECT_EQ(head_.count<step_done>(), 0u);
}

TEST_F(worker, keeps_as_many_orders_as_steps_may_be_in_flight) {
  EXPECT_EQ(start(stage_of(2, 1, 1)), "");
  auto order = next_order(2);
  for (int i = 0; i < scheduler_settings::most_steps_in_flight; ++i) tell(actor_, order);
  EXPECT_EQ(start(stage_of(3, 1, 1)), "");  // heard after all of these
  EXPECT_EQ(head_.count<stage_failed>(), 0u);
  order.life = life(3);
  for (int i = 0; i <= scheduler_settings::most_steps_in_flight; ++i) tell(actor_, order);
  EXPECT_EQ(head_.take<stage_failed>().error, "orders pile up");
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
  for (const std::int32_t sequences : {0, -1, scheduler_settings::most_sequences + 1}) {
    auto states = stage_of(2);
    states.max_sequences = sequences;
    EXPECT_EQ(start(states),
              fmt::format("a stage with 16 blocks, 64 positions, 32 rows, {} sequences and 32 states", sequences));
  }
  for (const std::int32_t count : {31, -1, 2 * scheduler_settings::most_sequences + 1}) {
    auto states = stage_of(2);
    states.states = count;
    EXPECT_EQ(start(states),
              fmt::format("a stage with 16 blocks, 64 positions, 32 rows, 32 sequences and {} states", count));
  }
  EXPECT_EQ(start(stage_of(3)), "");
}

TEST_F(worker, refuses_a_stage_whose_steps_are_too_long_for_its_links) {
  auto large = stage_of(2);
  large.max_rows = 1 << 18;
  const std::string why = start(large);
  EXPECT_NE(why.find("scheduler.max_batch_tokens"), std::string::npos) << why;
  EXPECT_NE(why.find("262144"), std::string::npos) << why;
  EXPECT_EQ(start(stage_of(3)), "");
}

TEST_F(worker, says_when_its_device_is_lost_and_gives_its_life_up) {
  std::promise<std::string> lost;
  const auto fails = []() -> std::shared_ptr<const token_tree> { throw device_lost("cuda: a step: it is gone"); };
  worker_parts parts = parts_for(head_);
  parts.tokens = fails;
  parts.on_device_lost = [&](const std::string& why) { lost.set_value(why); };
  actor_ = spawn_worker(system_, std::move(parts));
  EXPECT_EQ(start(stage_of(2)), "");
  engine_request request;
  request.sequence.prompt = {4, 5};
  request.sampling.constraint.kind = constraint_kind::json_object;  // what needs the tokens
  EXPECT_TRUE(requests_->submit(std::move(request)));
  tell(actor_, next_order(2));
  EXPECT_EQ(head_.take<stage_failed>().error, "cuda: a step: it is gone");
  EXPECT_EQ(lost.get_future().get(), "cuda: a step: it is gone");
}

/// A second worker, which shares the stage with the first.
class ranks : public worker {
 protected:
  ranks() {
    for (rank_worker& each : rank_) spawn(each, {});
  }
  ~ranks() override {
    for (const rank_worker& each : rank_) tell(each.actor, stop_now{});
  }

  struct rank_worker {
    explicit rank_worker(caf::actor_system& system) : head(system) {}
    mock<workers_head_actor> head;
    std::shared_ptr<meeting_place> place = std::make_shared<meeting_place>("127.0.0.1");
    std::shared_ptr<rank_alarm> alarm = std::make_shared<rank_alarm>();
    std::function<void()> reads;  ///< its weights
    worker_actor actor;
  };
  void spawn(rank_worker& each, device_id device,
             std::chrono::milliseconds meeting_patience = std::chrono::seconds(20)) {
    worker_parts parts = parts_for(each.head);
    parts.device = device;
    parts.ranks.place = each.place;
    parts.ranks.meeting_patience = meeting_patience;
    parts.ranks.patience = std::chrono::milliseconds(500);
    parts.alarm = each.alarm;
    parts.preload = [&each](const loaded_model&, std::int64_t, std::int64_t) {
      if (each.reads) each.reads();
    };
    each.actor = spawn_worker(system_, std::move(parts));
  }
  void begin(std::uint64_t epoch, std::uint32_t rank, std::uint32_t size = 2) {
    start_stage what = stage_of(epoch);
    what.tensor_rank = rank;
    what.tensor_ranks = size;
    what.tensor_meeting = rank_[0].place->endpoint();
    rank_[rank].alarm->ring();
    tell(rank_[rank].actor, what);
  }
  void begin_both(std::uint64_t epoch) {
    begin(epoch, 0);
    begin(epoch, 1);
    for (rank_worker& each : rank_) EXPECT_EQ(each.head.take<stage_started>().error, "");
  }

  rank_worker rank_[2]{rank_worker(system_), rank_worker(system_)};
};

TEST_F(ranks, make_a_step_together_and_the_first_says_what_was_chosen) {
  EXPECT_EQ(start(stage_of(2)), "");
  begin_both(2);
  const auto order = next_order(2);
  tell(actor_, order);
  for (const rank_worker& each : rank_) tell(each.actor, order);
  EXPECT_EQ(rank_[0].head.take<step_done>().outcome.tokens, head_.take<step_done>().outcome.tokens);
  begin_both(3);
  EXPECT_EQ(rank_[1].head.count<step_done>(), 0u);
}

TEST_F(ranks, go_ahead_together) {
  begin_both(2);
  const auto order = next_order(2);
  run_step next = order;
  ASSERT_TRUE(requests_->plan_ahead(instant(), next.step));
  std::vector<token_id> chosen;
  for (const run_step& step : {order, next}) {
    for (const rank_worker& each : rank_) tell(each.actor, step);
    chosen.push_back(rank_[0].head.take<step_done>().outcome.tokens.at(0));
  }
  EXPECT_EQ(rank_[0].head.count<step_ending>(), 2u);
  EXPECT_EQ(rank_[1].head.count<step_ending>(), 0u);

  EXPECT_EQ(start(stage_of(2)), "");
  next.step.plan.tokens = {chosen[0]};
  for (const run_step& step : {order, next}) tell(actor_, step);
  for (const token_id token : chosen) EXPECT_EQ(head_.take<step_done>().outcome.tokens.at(0), token);
}

TEST_F(ranks, fail_when_one_is_gone) {
  begin_both(2);
  tell(rank_[1].actor, forget_life{});
  tell(rank_[0].actor, next_order(2));
  const auto failed = rank_[0].head.take<stage_failed>();
  EXPECT_NE(failed.error.find("rank 1 of 2"), std::string::npos) << failed.error;
  EXPECT_EQ(failed.lost, (seat{0, 1}));
}

TEST_F(ranks, say_who_does_not_come) {
  for (rank_worker& each : rank_) {
    tell(each.actor, stop_now{});
    spawn(each, {}, std::chrono::milliseconds(100));
  }
  begin(2, 0);
  EXPECT_EQ(rank_[0].head.take<stage_started>().lost, (seat{0, 1}));
  begin(3, 1);
  EXPECT_EQ(rank_[1].head.take<stage_started>().lost, (seat{0, 0}));
}

TEST_F(ranks, do_not_share_a_stage_between_a_gpu_and_a_processor) {
  tell(rank_[1].actor, stop_now{});
  spawn(rank_[1], device_id{0});
  begin(2, 0);
  begin(2, 1);
  EXPECT_NE(rank_[0].head.take<stage_started>().error.find("the device cpu, and rank 1 of its stage a GPU"),
            std::string::npos);
  EXPECT_NE(rank_[1].head.take<stage_started>().error.find("the device cuda:0, and rank 0 of its stage a processor"),
            std::string::npos);
}

TEST_F(ranks, have_met_before_one_of_them_reads_its_weights_for_long) {
  std::promise<void> is_read;
  rank_[1].reads = [done = is_read.get_future().share()] { done.wait(); };
  begin(2, 0);
  begin(2, 1);
  EXPECT_EQ(rank_[0].head.take<stage_started>().error, "");
  is_read.set_value();
  EXPECT_EQ(rank_[1].head.take<stage_started>().error, "");
}

TEST_F(ranks, that_wait_for_others_are_woken_by_the_next_life) {
  begin(2, 0);  // the other rank never comes
  begin(3, 0);
  begin(3, 1);
  EXPECT_NE(rank_[0].head.take<stage_started>().error, "");
  EXPECT_EQ(rank_[0].head.take<stage_started>().error, "");
  const auto order = next_order(3);
  tell(rank_[0].actor, order);  // and now it waits in the middle of a step
  begin(4, 0, 1);
  tell(rank_[1].actor, order);  // which is not made, although the other one is there after all
  EXPECT_NE(rank_[0].head.take<stage_failed>().error, "");
  EXPECT_EQ(rank_[0].head.take<stage_started>().life, life(4));
}

TEST_F(worker, that_shares_no_stage_says_so) {
  start_stage what = stage_of(2);
  what.tensor_ranks = 2;
  EXPECT_NE(start(what).find("tensor"), std::string::npos);
}

TEST_F(worker, says_what_takes_long_before_it_does_it) {
  inbox said;
  worker_parts parts = parts_for(head_);
  parts.say = [&](const std::string& line) { said.put(line); };
  parts.preload = [&](const loaded_model&, std::int64_t, std::int64_t) { EXPECT_EQ(said.count<std::string>(), 1u); };
  const worker_actor other = spawn_worker(system_, std::move(parts));
  tell(other, stage_of(2));
  EXPECT_EQ(head_.take<stage_started>().error, "");
  EXPECT_EQ(said.take<std::string>(), "gets ready for layers 0 to 1, with memory for 256 positions");
  tell(other, stop_now{});
}

TEST_F(worker, closes_its_link_to_the_next_stage_with_its_life) {
  peer next(peer::listening());
  wire links(bus::options{});
  links.start();
  worker_parts parts = parts_for(head_);
  parts.links = &links;
  const worker_actor other = spawn_worker(system_, std::move(parts));
  start_stage first = stage_of(2, 0, 1);
  first.next = next->endpoint();
  tell(other, first);
  EXPECT_EQ(head_.take<stage_started>().error, "");
  tell(other, forget_life{});
  EXPECT_TRUE(next.wait_closed());
  tell(other, stop_now{});
  EXPECT_TRUE(await_ends(std::chrono::seconds(30), other));  // it uses `links`
}

TEST_F(worker, begins_no_life_in_which_it_cannot_reach_the_next_stage) {
  auto next = std::make_unique<peer>(peer::listening());
  bus::options options;
  options.forget_after = std::chrono::seconds(1);
  wire links(options);
  worker_parts parts = parts_for(head_);
  parts.links = &links;
  parts.reach_patience = std::chrono::seconds(2);
  const worker_actor other = spawn_worker(system_, std::move(parts));
  links.on_lost([other](link_id link, const link_end& end) { tell(other, link_lost{link, end}); });
  links.start();
  start_stage first = stage_of(2, 0, 1);
  first.next = (*next)->endpoint();
  tell(other, first);
  EXPECT_EQ(head_.take<stage_started>().error, "");
  next.reset();
  const auto failed = head_.take<stage_failed>();
  EXPECT_EQ(failed.life, life(2));
  EXPECT_NE(failed.error.find(first.next + ": could not be reached"), std::string::npos) << failed.error;
  EXPECT_EQ(failed.lost, (seat{1, 0}));
  first.life = life(3);
  tell(other, first);
  const auto answer = head_.take<stage_started>();
  EXPECT_NE(answer.error.find(first.next + ": the next stage is there and does not answer"), std::string::npos)
      << answer.error;
  EXPECT_EQ(answer.lost, (seat{1, 0}));
  tell(other, stop_now{});
  EXPECT_TRUE(await_ends(std::chrono::seconds(30), other));  // it uses `links`
}

TEST_F(worker, gives_a_life_up_over_an_order_that_reaches_beyond_its_stage) {
  EXPECT_EQ(start(stage_of(2)), "");
  auto order = next_order(2);
  order.step.plan.shares.at(0).tokens = 1000;
  tell(actor_, order);
  EXPECT_EQ(head_.take<stage_failed>().life, life(2));
  EXPECT_EQ(start(stage_of(3)), "");
}

}  // namespace
}  // namespace troupe::test
