#include "model/engine/scheduling/urgency.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

namespace troupe::detail {
namespace {

using ::testing::ElementsAre;

class urgency_of_those_that_wait : public ::testing::Test {
 protected:
  scheduled_sequence& wait(request_priority priority, adapter_version adapter, std::uint64_t step) {
    scheduled_sequence& made = *made_.emplace_back(std::make_unique<scheduled_sequence>());
    made.order = made_.size();
    made.priority = priority;
    made.adapter = adapter;
    made.tokens.resize(10);
    queues_[to_size(priority)].push(made, tenant_id{1});
    made.use = &adapters_.wait(adapter, step);
    return made;
  }

  adapter_slots adapters_{8};
  fair_queues queues_;
  adapter_version not_ready_ = no_adapter;
  urgency urgency_{{.max_adapters = 8,
                    .adapter_patience = 5,
                    .batch_patience = 10,
                    .head_patience = 100,
                    .tokens = 4,
                    .context = 2048},
                   adapters_,
                   queues_,
                   [this](const scheduled_sequence& s) { return s.adapter == no_adapter || s.adapter != not_ready_; }};
  const std::vector<scheduled_sequence*> nobody_runs_;

 private:
  std::vector<std::unique_ptr<scheduled_sequence>> made_;
};

TEST_F(urgency_of_those_that_wait, comes_to_an_adapter_of_which_nothing_ran_for_long) {
  scheduled_sequence& first = wait(request_priority::interactive, adapter_version{1}, 1);
  wait(request_priority::interactive, adapter_version{1}, 2);
  urgency_.declare(nobody_runs_, 5);
  EXPECT_TRUE(urgency_.sequences().empty());
  urgency_.declare(nobody_runs_, 6);
  EXPECT_THAT(urgency_.sequences(), ElementsAre(&first)) << "one of its sequences is enough";
  EXPECT_EQ(first.urgent_until, 14u);
  urgency_.declare(nobody_runs_, 7);
  EXPECT_EQ(urgency_.declared(), 1u);
}

TEST_F(urgency_of_those_that_wait, comes_to_few_adapters_at_a_time) {
  for (std::uint32_t adapter = 1; adapter <= 4; ++adapter)
    wait(request_priority::interactive, adapter_version{adapter}, adapter);
  urgency_.declare(nobody_runs_, 20);
  ASSERT_EQ(urgency_.sequences().size(), 2u) << "a quarter of those that run";
  scheduled_sequence& first = *urgency_.sequences()[0];
  EXPECT_EQ(first.adapter, adapter_version{1});
  queues_[0].remove(first);
  adapters_.start(*first.use, 20);
  adapters_.stop_waiting(*first.use, 20);
  first.phase = sequence_phase::running;
  urgency_.end(first, 21);
  EXPECT_EQ(first.urgent, 0u);
  urgency_.declare({&first}, 22);
  ASSERT_EQ(urgency_.sequences().size(), 2u);
  EXPECT_EQ(urgency_.sequences()[1]->adapter, adapter_version{3});
}

TEST_F(urgency_of_those_that_wait, comes_to_batch_that_had_no_share_for_long) {
  scheduled_sequence& batch = wait(request_priority::batch, no_adapter, 1);
  urgency_.note_batch_served(3);
  urgency_.declare(nobody_runs_, 12);
  EXPECT_TRUE(urgency_.sequences().empty());
  urgency_.declare(nobody_runs_, 13);
  EXPECT_THAT(urgency_.sequences(), ElementsAre(&batch));
}

TEST_F(urgency_of_those_that_wait, comes_to_the_first_in_line_that_could_run) {
  not_ready_ = adapter_version{7};
  wait(request_priority::interactive, not_ready_, 98);
  scheduled_sequence& second = wait(request_priority::interactive, no_adapter, 98);
  urgency_.note_turn(request_priority::interactive, 1);
  urgency_.note_turn(request_priority::batch, 50);
  urgency_.declare(nobody_runs_, 100);
  EXPECT_TRUE(urgency_.sequences().empty());
  urgency_.declare(nobody_runs_, 101);
  EXPECT_THAT(urgency_.sequences(), ElementsAre(&second));
  EXPECT_GE(second.urgent_until, 2048u) << "to its end";
}

}  // namespace
}  // namespace troupe::detail
