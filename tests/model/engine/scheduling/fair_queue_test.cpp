#include "model/engine/scheduling/fair_queue.hpp"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <random>

namespace troupe::detail {
namespace {

class fair_queue_test : public ::testing::Test {
 protected:
  scheduled_sequence& push(std::uint64_t tenant, std::uint64_t weight = 1) {
    scheduled_sequence& made = *made_.emplace_back(std::make_unique<scheduled_sequence>());
    made.order = made_.size();
    made.id = sequence_id{made.order};
    queue.push(made, tenant_id{tenant}, weight);
    return made;
  }
  scheduled_sequence* next() {
    return queue.next([](const scheduled_sequence&) { return true; });
  }
  /// Who is served, when each costs `cost`.
  std::vector<std::uint64_t> serve(int count, std::uint64_t cost) {
    std::vector<std::uint64_t> tenants;
    for (int i = 0; i < count; ++i) {
      scheduled_sequence* served = next();
      tenants.push_back(served->share->tenant.value);
      queue.remove(*served);
      queue.charge(*served, cost);
    }
    return tenants;
  }

  fair_queue queue;
  std::vector<std::unique_ptr<scheduled_sequence>> made_;
};

TEST_F(fair_queue_test, serves_one_tenant_in_order_of_arrival) {
  scheduled_sequence& first = push(1);
  push(1);
  EXPECT_EQ(next(), &first);
}

TEST_F(fair_queue_test, serves_tenants_alike_however_much_they_ask_for) {
  for (int i = 0; i < 20; ++i) push(1);
  for (int i = 0; i < 5; ++i) push(2);
  const auto served = serve(10, 100);
  EXPECT_EQ(std::count(served.begin(), served.end(), 2u), 5);
}

TEST_F(fair_queue_test, serves_by_weight) {
  for (int i = 0; i < 20; ++i) push(1, 3), push(2);
  const auto served = serve(16, 100);
  EXPECT_EQ(std::count(served.begin(), served.end(), 1u), 12);
}

TEST_F(fair_queue_test, saves_nothing_up_for_who_was_away) {
  for (int i = 0; i < 20; ++i) push(1);
  serve(10, 100);
  for (int i = 0; i < 20; ++i) push(2);
  const auto served = serve(8, 100);
  EXPECT_EQ(std::count(served.begin(), served.end(), 1u), 4);
}

TEST_F(fair_queue_test, forgets_tenants_that_come_and_go_one_at_a_time) {
  constexpr std::uint64_t count = 10'000;
  for (std::uint64_t tenant = 1; tenant <= count; ++tenant) {
    scheduled_sequence& only = push(tenant);
    queue.remove(only);
    queue.charge(only, 100);
    queue.leave(only);
  }
  std::size_t known = 0;
  for (std::uint64_t tenant = 1; tenant <= count; ++tenant) known += queue.served(tenant_id{tenant}) > 0;
  EXPECT_LE(known, 2048u);
}

TEST_F(fair_queue_test, puts_preempted_ones_first_by_arrival) {
  scheduled_sequence& first = push(1);
  scheduled_sequence& second = push(1);
  push(2);
  queue.remove(first), queue.remove(second);
  queue.push_preempted(second);
  queue.push_preempted(first);
  EXPECT_EQ(next(), &first);
  queue.remove(first);
  EXPECT_EQ(next(), &second);
}

TEST_F(fair_queue_test, passes_over_those_that_are_not_admissible) {
  push(1);
  scheduled_sequence& other = push(1);
  other.adapter = adapter_version{4};
  EXPECT_EQ(queue.next([](const scheduled_sequence& s) { return s.adapter.value == 4; }), &other);
  EXPECT_EQ(queue.oldest([](const scheduled_sequence& s) { return s.adapter.value == 4; }), &other);
  EXPECT_EQ(queue.next([](const scheduled_sequence&) { return false; }), nullptr);
}

TEST_F(fair_queue_test, follows_what_tenants_are_served_while_they_wait) {
  std::map<std::uint64_t, std::uint64_t> served;
  std::map<std::uint64_t, scheduled_sequence*> runs;
  for (std::uint64_t tenant = 1; tenant <= 20; ++tenant) {
    runs[tenant] = &push(tenant), served[tenant] = 0;
    push(tenant);
    queue.remove(*runs[tenant]);
  }
  std::mt19937 random(1);
  for (int i = 0; i < 1000; ++i) {
    const std::uint64_t tenant = 1 + random() % 20, cost = random() % 100;
    queue.charge(*runs[tenant], cost);
    served[tenant] += cost;
    const auto least = std::min_element(served.begin(), served.end(),
                                        [](const auto& a, const auto& b) { return a.second < b.second; });
    ASSERT_EQ(next()->share->tenant.value, least->first) << "after " << i;
  }
}

}  // namespace
}  // namespace troupe::detail
