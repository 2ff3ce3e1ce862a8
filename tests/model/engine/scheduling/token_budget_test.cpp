#include "model/engine/scheduling/token_budget.hpp"

#include <gtest/gtest.h>

namespace troupe::detail {
namespace {

scheduled_sequence sequence_at(std::size_t computed, std::size_t pending) {
  scheduled_sequence sequence;
  sequence.stored.computed = computed;
  sequence.tokens.resize(computed + pending);
  return sequence;
}

TEST(token_costs, grow_with_the_position_beyond_the_even_context) {
  const token_costs costs(100, 64);
  EXPECT_EQ(costs.of(sequence_at(0, 9), 9), 9);
  EXPECT_EQ(costs.of(sequence_at(100, 9), 9), 9);
  EXPECT_EQ(costs.of(sequence_at(250, 9), 9), 23) << "two and a half times as much, rounded up";
  EXPECT_EQ(costs.affordable(sequence_at(250, 9), 23), 9);
  EXPECT_EQ(costs.affordable(sequence_at(250, 9), 22), 8);
}

TEST(token_costs, make_long_what_does_not_fit_into_a_step) {
  const token_costs costs(100, 64);
  EXPECT_FALSE(costs.is_long(sequence_at(0, 64)));
  EXPECT_TRUE(costs.is_long(sequence_at(0, 65)));
  EXPECT_TRUE(costs.is_long(sequence_at(200, 33)));
}

constexpr prompt_class long_one{}, short_one{.is_short = true};
constexpr prompt_class long_batch{.is_batch = true}, short_batch{.is_batch = true, .is_short = true};

TEST(prompt_shares, keep_some_for_batch_and_half_of_the_rest_for_short_prompts) {
  prompt_shares shares(80, 10, {.batch = 500, .short_prompts = 500});
  EXPECT_EQ(shares.most_for(long_one), 35);
  EXPECT_EQ(shares.most_for(short_one), 70);
  EXPECT_EQ(shares.most_for(long_batch), 80);
  shares.take(35, long_one);
  EXPECT_EQ(shares.most_for(short_one), 35);
  shares.take(20, short_one);
  EXPECT_EQ(shares.most_for(long_one), 0);
  EXPECT_EQ(shares.most_for(short_batch), 25);
}

TEST(prompt_shares, keep_half_of_what_batch_has_for_its_short_prompts) {
  prompt_shares shares(80, 10, {.batch = 500, .short_batch = 300});
  shares.take(50, long_one);
  EXPECT_EQ(shares.most_for(long_batch), 15);
  EXPECT_EQ(shares.most_for(short_batch), 30);
  shares.take(6, short_batch);
  EXPECT_EQ(shares.most_for(long_batch), 15) << "they have six of their half";
  shares.take(15, long_batch);
  EXPECT_EQ(shares.most_for(long_batch), 0);
  EXPECT_EQ(shares.most_for(short_batch), 9);
  const prompt_shares last(80, 10, {.batch = 500, .short_batch = 3});
  EXPECT_EQ(last.most_for(long_batch), 77) << "no more than is wanted";
}

TEST(prompt_shares, keep_no_more_than_is_wanted) {
  const prompt_shares shares(80, 10, {.batch = 2, .short_prompts = 3});
  EXPECT_EQ(shares.most_for(short_one), 78);
  EXPECT_EQ(shares.most_for(long_one), 75);
}

}  // namespace
}  // namespace troupe::detail
