#include "cluster/routing/routing.hpp"
#include "base/to_size.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <random>

namespace troupe {
namespace {

std::vector<std::int32_t> tokens_from(std::int32_t first, std::size_t count) {
  std::vector<std::int32_t> tokens(count);
  std::iota(tokens.begin(), tokens.end(), first);
  return tokens;
}

TEST(prefix_hashes, are_the_same_everywhere_and_name_full_blocks_only) {
  EXPECT_TRUE(prefix_hashes(tokens_from(0, 15), {}).empty());
  const auto hashes = prefix_hashes(tokens_from(0, 40), {});
  ASSERT_EQ(hashes.size(), 2u);
  static_assert(prefix_hash_of_start(adapter_version{}) == mix_prefix_hash(0x9ae16a3b2f90404fULL, 0));
  EXPECT_EQ(hashes, prefix_hashes(tokens_from(0, 32), {}));
}

TEST(prefix_hashes, take_in_all_that_came_before_and_the_adapter) {
  auto changed = tokens_from(0, 48);
  const auto hashes = prefix_hashes(changed, {});
  changed[0] = 7;
  const auto others = prefix_hashes(changed, {});
  const auto adapted = prefix_hashes(tokens_from(0, 48), adapter_version{1});
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_NE(hashes[i], others[i]);
    EXPECT_NE(hashes[i], adapted[i]);
  }
}

TEST(prefix_hashes, do_not_meet_on_small_changes) {
  std::vector<std::uint64_t> all;
  for (std::int32_t i = 0; i < 20000; ++i) {
    auto tokens = tokens_from(0, 16);
    tokens[to_size(i) % 16] += 1 + i / 16;
    all.push_back(prefix_hashes(tokens, {}).front());
  }
  std::sort(all.begin(), all.end());
  EXPECT_EQ(std::adjacent_find(all.begin(), all.end()), all.end());
}

/// Replica 0 has told `reports` times that so many sequences wait there; what `others` tell is for replica 1.
std::size_t moved_with(replica_load others, std::size_t reports, std::uint32_t waiting = 6) {
  routing_policy policy;
  for (const std::uint32_t id : {0u, 1u}) {
    policy.add_replica(replica_id(id));
    policy.set_ready(replica_id(id), true);
  }
  policy.update(replica_id(1), std::move(others));
  for (std::size_t i = 0; i < reports; ++i)
    policy.update(replica_id(0),
                  {.running = 8, .waiting = waiting, .max_sequences = 8, .max_waiting = 9, .blocks = 64});
  const std::size_t moved = policy.sequences_to_move(replica_id(0));
  EXPECT_EQ(policy.sequences_to_move(replica_id(0)), 0u) << "once for a while";
  return moved;
}

TEST(routing, lets_those_who_wait_move_to_free_seats) {
  const replica_load idle{.running = 3, .max_sequences = 8, .free_blocks = 64, .blocks = 64};
  EXPECT_EQ(moved_with(idle, 5), 5u);
  EXPECT_EQ(moved_with(idle, 5, 2), 2u);
  EXPECT_EQ(moved_with(idle, 4), 0u) << "they may start where they are";
  EXPECT_EQ(moved_with({.waiting = 1, .max_sequences = 8, .free_blocks = 64, .blocks = 64}, 9), 0u);
  EXPECT_EQ(moved_with({.running = 8, .max_sequences = 8, .free_blocks = 64, .blocks = 64}, 9), 0u);
  EXPECT_EQ(moved_with({.running = 3, .max_sequences = 8, .free_blocks = 31, .blocks = 64}, 9), 0u) << "no memory";
}

TEST(a_prefix_lru, loses_the_ends_of_old_prompts_first) {
  prefix_lru known(6);
  const std::vector<std::uint64_t> first{1, 2, 3, 4}, second{11, 12, 13, 14};
  known.touch(first);
  known.touch(second);
  EXPECT_EQ(known.match(first), 2u);
  EXPECT_EQ(known.match(second), 4u);
}

TEST(a_prefix_lru, holds_what_is_used) {
  prefix_lru known(4);
  const std::vector<std::uint64_t> first{1, 2}, second{11, 12}, third{21, 22};
  known.touch(first);
  known.touch(second);
  known.touch(first);
  known.touch(third);
  EXPECT_EQ(known.match(first), 2u);
  EXPECT_EQ(known.match(second), 0u);
}

TEST(a_prefix_lru, can_shrink_to_nothing_and_be_cleared) {
  prefix_lru known(100);
  const std::vector<std::uint64_t> prompt{1, 2, 3};
  known.touch(prompt);
  known.set_capacity(1);
  EXPECT_EQ(known.match(prompt), 1u);
  known.set_capacity(0);
  known.touch(prompt);
  EXPECT_EQ(known.match(prompt), 0u);
  known.set_capacity(10);
  known.touch(prompt);
  known.clear();
  EXPECT_EQ(known.match(prompt), 0u);
  known.touch(prompt);
  EXPECT_EQ(known.match(prompt), 3u);
}

constexpr replica_id a{1}, b{2};

replica_load load_of(std::uint32_t running, std::uint32_t waiting = 0) {
  replica_load load;
  load.running = running;
  load.waiting = waiting;
  load.max_sequences = 16;
  load.max_waiting = 8;
  load.free_blocks = load.blocks = 4096;
  return load;
}

class a_router : public testing::Test {
 protected:
  void SetUp() override {
    for (const replica_id id : {a, b}) {
      router.add_replica(id);
      report(id, load_of(0));
      router.set_ready(id, true);
    }
  }

  /// The replica has received all that was sent to it.
  void report(replica_id id, replica_load load) {
    load.received = sent_[id];
    router.update(id, std::move(load));
  }
  void send(replica_id id, const request_view& request) {
    router.sent(id, request);
    ++sent_[id];
  }

  request_view view(std::int32_t first, std::size_t tokens, adapter_version adapter = {}) {
    hashes = prefix_hashes(tokens_from(first, tokens), adapter);
    return {hashes, tokens, adapter, false};
  }
  replica_id choice(const request_view& request) { return router.choose(request).value(); }

  routing_policy router;
  std::vector<std::uint64_t> hashes;

 private:
  std::map<replica_id, std::uint64_t> sent_;
};

TEST_F(a_router, takes_the_first_of_equals) {
  EXPECT_EQ(choice(view(0, 100)), a);
}

TEST_F(a_router, goes_where_the_prefix_is) {
  send(b, view(0, 320));
  report(b, load_of(0));
  EXPECT_EQ(choice(view(0, 320)), b);
  EXPECT_EQ(choice(view(5000, 320)), a);
}

TEST_F(a_router, leaves_a_prefix_when_waiting_costs_more) {
  send(b, view(0, 320));
  auto busy = load_of(16);
  busy.queued_tokens = 5000;
  report(b, busy);
  EXPECT_EQ(choice(view(0, 320)), a);
}

TEST_F(a_router, counts_what_it_sent_until_the_replica_knows) {
  send(a, view(0, 1000));
  EXPECT_EQ(choice(view(5000, 100)), b);
  auto load = load_of(0);
  load.received = 0;
  router.update(a, load);
  EXPECT_EQ(choice(view(5000, 100)), b) << "that load was sent before the request arrived";
  load.received = 1;
  router.update(a, load);
  EXPECT_EQ(choice(view(5000, 100)), a);
}

TEST_F(a_router, sticks_to_where_an_adapter_is) {
  constexpr adapter_version pricing{7};
  auto load = load_of(4);
  load.adapters = {adapter_version{3}, pricing};
  report(b, load);
  EXPECT_EQ(choice(view(0, 64, pricing)), b);
  EXPECT_EQ(choice(view(0, 64)), a);
}

TEST_F(a_router, expects_an_adapter_where_it_sent_one) {
  constexpr adapter_version pricing{7};
  send(a, view(0, 64, pricing));
  EXPECT_EQ(choice(view(9000, 64, pricing)), a);
}

TEST_F(a_router, avoids_a_replica_that_could_not_load_the_adapter_while_another_one_may) {
  constexpr adapter_version pricing{7};
  auto load = load_of(0);
  load.unloadable = {pricing};
  report(a, load);
  report(b, load_of(10));
  EXPECT_EQ(choice(view(0, 10, pricing)), b);
  EXPECT_EQ(choice(view(0, 10)), a);
  report(b, load_of(16, 8));
  EXPECT_FALSE(router.choose(view(0, 10, pricing))) << "b is full, and will have room";
  report(b, load);
  EXPECT_FALSE(router.is_loadable(pricing));
  EXPECT_EQ(choice(view(0, 10, pricing)), a) << "it is tried";
  report(b, load_of(10));
  router.set_ready(b, false);
  EXPECT_FALSE(router.is_loadable(pricing));
}

TEST_F(a_router, avoids_a_replica_without_blocks) {
  auto load = load_of(0);
  load.free_blocks = 2;
  report(a, load);
  EXPECT_EQ(choice(view(0, 320)), b);
}

TEST_F(a_router, chooses_only_who_is_ready) {
  router.set_ready(a, false);
  EXPECT_EQ(choice(view(0, 10)), b);
  EXPECT_EQ(router.ready(), 1u);
  router.set_ready(b, false);
  EXPECT_FALSE(router.choose(view(0, 10)));
}

TEST_F(a_router, chooses_none_when_every_queue_is_full) {
  report(a, load_of(16, 8));
  report(b, load_of(16, 8));
  EXPECT_FALSE(router.choose(view(0, 10)));
  report(b, load_of(16, 7));
  EXPECT_EQ(choice(view(0, 10)), b);
}

TEST_F(a_router, counts_requests_on_their_way_as_queued) {
  router.set_ready(b, false);
  for (int i = 0; i < 24; ++i) {
    ASSERT_TRUE(router.choose(view(0, 10)));
    send(a, view(0, 10));
  }
  EXPECT_FALSE(router.choose(view(0, 10)));
}

TEST_F(a_router, has_room_for_as_many_as_end_between_two_reports) {
  router.set_ready(b, false);
  for (int i = 0; i < 1000; ++i) {
    ASSERT_TRUE(router.choose(view(0, 10))) << i;
    send(a, view(0, 10));
    router.ended(a, 1);
  }
}

TEST_F(a_router, counts_ends_only_until_the_next_report_which_knows_of_them) {
  router.set_ready(b, false);
  report(a, load_of(16, 8));
  EXPECT_FALSE(router.choose(view(0, 10)));
  router.ended(a, 3);
  EXPECT_TRUE(router.choose(view(0, 10)));
  report(a, load_of(16, 8));
  EXPECT_FALSE(router.choose(view(0, 10)));
  router.ended(a, 100);  // more than it has
  for (int i = 0; i < 200; ++i) send(a, view(0, 10));
  EXPECT_FALSE(router.choose(view(0, 10)));
}

TEST_F(a_router, keeps_a_part_of_the_queues_from_batch) {
  report(a, load_of(16, 6));
  report(b, load_of(16, 6));
  auto request = view(0, 10);
  EXPECT_TRUE(router.choose(request));
  request.is_batch = true;
  EXPECT_FALSE(router.choose(request));
}

TEST_F(a_router, expects_nothing_in_the_cache_of_a_replica_that_began_anew) {
  send(b, view(0, 320));
  report(b, load_of(0));
  EXPECT_EQ(choice(view(0, 320)), b);
  router.set_ready(b, false);
  EXPECT_EQ(router.ready(), 1u);
  router.set_ready(b, true);
  EXPECT_EQ(choice(view(0, 320)), a);
}

TEST_F(a_router, ignores_who_it_does_not_know) {
  const replica_id stranger{99};
  router.update(stranger, load_of(1));
  router.sent(stranger, view(0, 10));
  router.ended(stranger, 1);
  router.set_ready(stranger, true);
  EXPECT_EQ(router.ready(), 2u);
  EXPECT_EQ(choice(view(0, 10)), a);
}

TEST_F(a_router, remembers_no_more_blocks_than_a_replica_has) {
  auto small = load_of(0);
  small.blocks = 4;
  report(a, small);
  send(a, view(0, 320));
  report(a, small);
  auto busy = load_of(0);
  busy.queued_tokens = 200;
  send(b, view(0, 320));
  report(b, busy);
  EXPECT_EQ(choice(view(0, 320)), b) << "a has 256 tokens to compute";
  EXPECT_EQ(choice(view(0, 64)), a);
}

/// Replicas that compute prompts at a fixed speed, and requests of groups with common prefixes.
class simulation {
 public:
  static constexpr std::uint32_t replicas = 4;
  static constexpr int requests = 4000;
  static constexpr std::uint32_t cache_blocks = 400;  ///< of the 800 that all common prefixes have together
  struct outcome {
    double hit_rate = 0, imbalance = 0, adapter_loads = 0;
  };

  explicit simulation(bool by_policy)
      : by_policy_(by_policy), random_(17), caches_(replicas, prefix_lru(cache_blocks)) {
    backlog_.resize(replicas);
    computed_.resize(replicas);
    received_.resize(replicas);
    adapters_.resize(replicas);
    for (std::uint32_t i = 0; i < replicas; ++i) {
      router_.add_replica(replica_id{i});
      router_.set_ready(replica_id{i}, true);
    }
    report();
  }

  outcome run() {
    for (int i = 0; i < requests; ++i) {
      serve(i);
      for (double& each : backlog_) each = std::max(0.0, each - 90);  // what a replica computes between two requests
      if (i % 5 == 0) report();
    }
    const double most = *std::max_element(computed_.begin(), computed_.end());
    const double mean = std::accumulate(computed_.begin(), computed_.end(), 0.0) / replicas;
    return {hits_ / blocks_, most / mean, static_cast<double>(loads_)};
  }

 private:
  void serve(int number) {
    const auto group =
        static_cast<std::int32_t>(std::min(random_() % 40, random_() % 40));  // some groups have more requests
    const adapter_version adapter{static_cast<std::uint32_t>(group % 8)};
    auto tokens = tokens_from(group * 10000, 320);
    const auto own = tokens_from(1'000'000 + number * 100, 64);
    tokens.insert(tokens.end(), own.begin(), own.end());
    const auto hashes = prefix_hashes(tokens, adapter);
    const request_view request{hashes, tokens.size(), adapter, false};
    const replica_id where =
        by_policy_ ? router_.choose(request).value() : replica_id{static_cast<std::uint32_t>(number) % replicas};
    router_.sent(where, request);
    compute(where.value, request);
  }
  void compute(std::uint32_t where, const request_view& request) {
    const std::size_t hit = caches_[where].match(request.prefix);
    caches_[where].touch(request.prefix);
    const double work = static_cast<double>(request.prompt_tokens - hit * block_tokens);
    backlog_[where] += work;
    computed_[where] += work;
    hits_ += static_cast<double>(hit);
    blocks_ += static_cast<double>(request.prefix.size());
    ++received_[where];
    use_adapter(adapters_[where], request.adapter);
  }
  void use_adapter(std::vector<adapter_version>& slots, adapter_version adapter) {
    const auto found = std::find(slots.begin(), slots.end(), adapter);
    if (found == slots.end()) ++loads_;
    if (found != slots.end()) slots.erase(found);
    slots.push_back(adapter);
    if (slots.size() > 4) slots.erase(slots.begin());
  }
  void report() {
    for (std::uint32_t i = 0; i < replicas; ++i) {
      replica_load load;
      load.max_sequences = 64;
      load.max_waiting = 4096;
      load.blocks = load.free_blocks = cache_blocks;
      load.queued_tokens = static_cast<std::uint64_t>(backlog_[i]);
      load.received = received_[i];
      load.adapters = adapters_[i];
      router_.update(replica_id{i}, load);
    }
  }

  bool by_policy_;
  std::mt19937 random_;
  routing_policy router_;
  std::vector<prefix_lru> caches_;
  std::vector<double> backlog_, computed_;
  std::vector<std::uint64_t> received_;
  std::vector<std::vector<adapter_version>> adapters_;
  double hits_ = 0, blocks_ = 0;
  int loads_ = 0;
};

TEST(routing_by_score, hits_more_than_taking_turns_and_stays_balanced) {
  const auto turns = simulation(false).run();
  const auto policy = simulation(true).run();
  RecordProperty("hit_rate_turns", std::to_string(turns.hit_rate));
  RecordProperty("hit_rate_policy", std::to_string(policy.hit_rate));
  EXPECT_GT(policy.hit_rate, turns.hit_rate + 0.05) << "turns " << turns.hit_rate;
  EXPECT_LT(policy.imbalance, 1.5);
  EXPECT_LT(policy.adapter_loads, turns.adapter_loads / 3) << "adapters stay where they are";
}

}  // namespace
}  // namespace troupe
