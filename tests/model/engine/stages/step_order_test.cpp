#include "model/engine/stages/step_order.hpp"
#include "base/to_size.hpp"

#include <gtest/gtest.h>

#include <functional>

#include "tests/base/refusal.hpp"

namespace troupe {
namespace {

constexpr order_limits four_rows{
    .max_rows = 4, .max_sequences = 2, .blocks = 3, .states = 2, .context = 32, .vocab_size = 10};

/// Two shares that fill the step.
step_order sound_order() {
  step_order order;
  planned_share& first = order.plan.shares.emplace_back();
  first.tokens = 3;
  first.blocks = first.answers = first.logit_rows = 1;
  planned_share second;
  second.position = 31;
  second.first_token = 3;
  second.first_block = second.tokens = second.blocks = 1;
  order.plan.shares.push_back(second);
  order.plan.tokens = {0, 9, 1, 2};
  order.plan.blocks = {block_id{0}, block_id{2}};
  order.plan.copies = {{block_id{0}, block_id{1}}};
  order.plan.answers = {sequence_id{1}};
  return order;
}

std::string refusal_of_changed(const std::function<void(step_plan&)>& change) {
  step_order order = sound_order();
  change(order.plan);
  return test::refusal([&] { check(order, four_rows); });
}

TEST(step_orders, are_carried_out_up_to_the_limits_of_a_stage) {
  EXPECT_EQ(refusal_of_changed([](step_plan&) {}), "");
}

TEST(step_orders, are_refused_where_a_share_reaches_beyond_its_lists) {
  const auto refused = [](auto member, auto value) {
    return refusal_of_changed([&](step_plan& plan) { plan.shares[0].*member = value; });
  };
  const std::string said = "step 0 is no step of this stage: a share is out of range";
  EXPECT_EQ(refused(&planned_share::tokens, 0), said);
  EXPECT_EQ(refused(&planned_share::tokens, 5), said);
  EXPECT_EQ(refused(&planned_share::first_token, -1), said);
  EXPECT_EQ(refused(&planned_share::first_token, 1), said);
  EXPECT_EQ(refused(&planned_share::first_block, -1), said);
  EXPECT_EQ(refused(&planned_share::blocks, 3), said);
  EXPECT_EQ(refused(&planned_share::blocks, -1), said);
  EXPECT_EQ(refused(&planned_share::kept_blocks, -1), said);
  EXPECT_EQ(refused(&planned_share::first_answer, 1), said);
  EXPECT_EQ(refused(&planned_share::answers, 2), said);
  EXPECT_EQ(refused(&planned_share::logit_rows, -1), said);
  EXPECT_EQ(refused(&planned_share::logit_rows, 4), said);
  EXPECT_EQ(refused(&planned_share::position, -1), said);
  EXPECT_EQ(refused(&planned_share::position, 30), said);
  EXPECT_EQ(refused(&planned_share::state, -1), said);
  EXPECT_EQ(refused(&planned_share::state, 2), said);
  EXPECT_EQ(refused(&planned_share::state, 1), "");
}

TEST(step_orders, are_refused_where_shares_and_tokens_do_not_match) {
  EXPECT_NE(refusal_of_changed([](step_plan& plan) { plan.shares.pop_back(); }).find("tokens of no share"),
            std::string::npos);
  EXPECT_NE(refusal_of_changed([](step_plan& plan) { plan.shares[1].first_token = 2; }).find("a share"),
            std::string::npos);
  EXPECT_NE(refusal_of_changed([](step_plan& plan) { plan.tokens.push_back(0); }).find("too many"), std::string::npos);
}

TEST(step_orders, are_refused_with_more_sequences_than_a_stage_is_made_for) {
  step_order order = sound_order();
  order_limits one_sequence = four_rows;
  one_sequence.max_sequences = 1;
  EXPECT_EQ(test::refusal([&] { check(order, one_sequence); }), "step 0 is no step of this stage: too many sequences");
}

TEST(step_orders, are_refused_with_tokens_and_blocks_that_are_not_there) {
  for (const token_id token : {-1, 10})
    EXPECT_NE(refusal_of_changed([&](step_plan& plan) { plan.tokens[1] = token; }).find("a token that"),
              std::string::npos);
  for (const block_id block : {block_id{-1}, block_id{3}}) {
    EXPECT_NE(refusal_of_changed([&](step_plan& plan) { plan.blocks[1] = block; }).find("a block that"),
              std::string::npos);
    EXPECT_NE(refusal_of_changed([&](step_plan& plan) { plan.copies[0].from = block; }).find("a copy"),
              std::string::npos);
    EXPECT_NE(refusal_of_changed([&](step_plan& plan) { plan.copies[0].to = block; }).find("a copy"),
              std::string::npos);
  }
  for (const auto& [from, to] : {std::pair{-1, 0}, {2, 0}, {0, -1}, {0, 2}}) {
    const state_copy copy{from, to, sequence_id{1}};
    EXPECT_NE(refusal_of_changed([&](step_plan& plan) { plan.state_copies = {copy}; }).find("a copy of a state"),
              std::string::npos);
  }
}

std::vector<answer_opening> openings_of(int count) {
  std::vector<answer_opening> all(to_size(count));
  for (int i = 0; i < count; ++i) {
    all[to_size(i)].text.resize(1000);
    all[to_size(i)].prompt_tokens = i;
  }
  return all;
}

TEST(openings, that_are_too_many_for_one_message_go_in_parts_in_their_order) {
  std::vector<answer_opening> left = openings_of(7);
  std::int64_t next = 0;
  int parts = 0;
  for (;; ++parts) {
    const auto part = take_excess(left, 12'000);
    for (const answer_opening& each : part) EXPECT_EQ(each.prompt_tokens, next++);
    if (part.empty()) break;
    EXPECT_EQ(part.size(), 2u) << "of some 4,000 bytes each";
  }
  for (const answer_opening& each : left) EXPECT_EQ(each.prompt_tokens, next++);
  EXPECT_EQ(next, 7);
  EXPECT_EQ(parts, 3);
}

TEST(openings, go_one_by_one_where_each_is_too_long) {
  std::vector<answer_opening> left = openings_of(3);
  EXPECT_EQ(take_excess(left, 10).size(), 1u);
  EXPECT_EQ(left.size(), 2u);
}

TEST(openings, are_counted_with_all_that_a_client_may_make_long) {
  const auto is_long = [](const std::function<void(answer_opening&)>& lengthen) {
    std::vector<answer_opening> two(2);
    lengthen(two[0]);
    return !take_excess(two, 8'000).empty();
  };
  EXPECT_FALSE(is_long([](answer_opening&) {}));
  EXPECT_TRUE(is_long([](answer_opening& each) { each.answers.resize(1000); }));
  EXPECT_TRUE(is_long([](answer_opening& each) { each.end_tokens.resize(2000); }));
  EXPECT_TRUE(is_long([](answer_opening& each) { each.sampling.stop = {std::string(8000, 'x')}; }));
  EXPECT_TRUE(is_long([](answer_opening& each) { each.sampling.stop_tokens.resize(2000); }));
  EXPECT_TRUE(is_long([](answer_opening& each) { each.sampling.logit_bias.resize(1000); }));
  EXPECT_TRUE(is_long([](answer_opening& each) {
    each.sampling.constraint = {constraint_kind::regex, std::string(8000, 'x')};
  }));
}

}  // namespace
}  // namespace troupe
