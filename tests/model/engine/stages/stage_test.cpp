// Orders may come from another process: a stage carries out none that reaches beyond it.
#include "model/engine/stages/stage.hpp"

#include <gtest/gtest.h>

#include "base/error.hpp"
#include "tests/base/places.hpp"
#include "tests/model/arch/models.hpp"

namespace troupe {
namespace {

class stage_of_one_model : public testing::Test {
 protected:
  thread_pool pool_{1};
  stage stage_{load_for_test(test::golden / "llama", scheme::f32),
               {.max_rows = 4, .blocks = 2, .context = 32},
               0,
               {pool_, kernels()}};

  /// Shares of one token each.
  static step_order order_of(std::initializer_list<std::uint64_t> sequences) {
    step_order order;
    order.plan.id = step_id{1};
    order.plan.blocks = {block_id{0}, block_id{1}};
    for (const std::uint64_t sequence : sequences) {
      planned_share& share = order.plan.shares.emplace_back();
      share.sequence = sequence_id{sequence};
      share.first_token = static_cast<std::int32_t>(order.plan.tokens.size());
      share.first_block = share.first_token;
      share.tokens = share.blocks = 1;
      order.plan.tokens.push_back(3);
    }
    return order;
  }
  static step_order opening(std::vector<token_id> text, std::int64_t prompt_tokens) {
    step_order order = order_of({1});
    answer_opening& opened = order.opened.emplace_back();
    opened.answers = {{sequence_id{1}, 0}};
    opened.sampling.prompt_logprobs = 1;
    opened.text = std::move(text);
    opened.prompt_tokens = prompt_tokens;
    return order;
  }
};

TEST_F(stage_of_one_model, begins_what_is_an_order_for_it) {
  EXPECT_EQ(stage_.begin(order_of({1, 2})), 2);
  EXPECT_EQ(stage_.begin(order_of({2, 1})), 2);
  EXPECT_EQ(stage_.begin(opening({3}, 1)), 1);
}

TEST_F(stage_of_one_model, reaches_as_far_as_its_blocks_where_no_context_is_named) {
  stage unlimited(load_for_test(test::golden / "llama", scheme::f32), {.max_rows = 4, .blocks = 2}, 0,
                  {pool_, kernels()});
  EXPECT_EQ(unlimited.begin(order_of({1, 2})), 2);
}

TEST_F(stage_of_one_model, has_as_many_sequences_at_a_time_as_it_was_made_for) {
  stage one(load_for_test(test::golden / "llama", scheme::f32),
            {.max_rows = 4, .max_sequences = 1, .blocks = 2, .context = 32}, 0, {pool_, kernels()});
  EXPECT_EQ(one.begin(order_of({1})), 1);
  EXPECT_THROW(one.begin(order_of({1, 2})), input_error);
}

TEST_F(stage_of_one_model, refuses_a_sequence_that_is_there_twice) {
  EXPECT_THROW(stage_.begin(order_of({1, 1})), input_error);
}

TEST_F(stage_of_one_model, refuses_rows_whose_blocks_do_not_hold_them) {
  step_order order = order_of({1});
  order.plan.shares[0].position = block_tokens;
  EXPECT_THROW(stage_.begin(order), input_error);
  order.plan.shares[0].blocks = 2;
  EXPECT_EQ(stage_.begin(order), 1);
}

TEST_F(stage_of_one_model, refuses_rows_that_go_on_with_blocks_that_it_was_not_told_or_told_to_forget) {
  step_order order = order_of({1});
  order.plan.shares[0].kept_blocks = 1;
  EXPECT_THROW(stage_.begin(order), input_error);
  EXPECT_EQ(stage_.begin(order_of({1})), 1);
  EXPECT_EQ(stage_.begin(order), 1);
  order.plan.forgotten = {sequence_id{1}};
  EXPECT_THROW(stage_.begin(order), input_error);
}

TEST_F(stage_of_one_model, refuses_to_go_on_from_a_token_that_it_has_not_chosen) {
  step_order order = order_of({1});
  order.plan.tokens = {chosen_before};
  EXPECT_THROW(stage_.begin(order), input_error);
}

TEST_F(stage_of_one_model, refuses_rows_with_an_adapter_that_is_not_loaded) {
  step_order order = order_of({1});
  order.plan.shares[0].adapter = adapter_version{7};
  EXPECT_THROW(stage_.begin(order), input_error);
}

TEST_F(stage_of_one_model, refuses_answers_that_are_sampled_in_no_way) {
  step_order order = opening({3}, 1);
  order.opened[0].sampling.temperature = -1.0;
  EXPECT_THROW(stage_.begin(order), input_error);
}

TEST_F(stage_of_one_model, refuses_answers_without_a_prompt_or_to_tokens_that_the_model_lacks) {
  EXPECT_THROW(stage_.begin(opening({}, 0)), input_error);
  EXPECT_THROW(stage_.begin(opening({3}, 2)), input_error);
  EXPECT_THROW(stage_.begin(opening({3, 1 << 20}, 1)), input_error);
  EXPECT_THROW(stage_.begin(opening({-1}, 1)), input_error);
}

class stage_of_a_model_with_states : public stage_of_one_model {
 protected:
  std::shared_ptr<const loaded_model> with_states_ = load_for_test(test::golden / "qwen3.5", scheme::f32);
  stage keeps_{with_states_, {.max_rows = 4, .blocks = 2, .states = 2, .context = 32}, 3, {pool_, kernels()}};

  static step_order two_shares(std::int32_t first, std::int32_t second) {
    step_order order = order_of({1, 2});
    order.plan.shares[0].state = first;
    order.plan.shares[1].state = second;
    return order;
  }
};

TEST_F(stage_of_a_model_with_states, begins_rows_that_have_a_state_each) {
  EXPECT_EQ(keeps_.begin(two_shares(0, 1)), 2);
  EXPECT_EQ(keeps_.begin(two_shares(1, 0)), 2);
  EXPECT_THROW(keeps_.begin(two_shares(1, 1)), input_error);
  EXPECT_THROW(keeps_.begin(two_shares(1, 2)), input_error);
}

TEST_F(stage_of_a_model_with_states, refuses_rows_that_go_on_from_elsewhere) {
  EXPECT_EQ(keeps_.begin(two_shares(0, 1)), 2);
  step_order next = two_shares(0, 1);
  for (planned_share& share : next.plan.shares) share.position = 1;
  EXPECT_EQ(keeps_.begin(next), 2);
  EXPECT_THROW(keeps_.begin(next), input_error);
}

TEST_F(stage_of_a_model_with_states, makes_no_guesses_and_so_goes_ahead) {
  EXPECT_TRUE(keeps_.goes_ahead());
  const stage guesses(load_for_test(test::golden / "llama", scheme::f32), {.max_rows = 4, .blocks = 2, .context = 32},
                      3, {pool_, kernels()});
  EXPECT_FALSE(guesses.goes_ahead());
}

}  // namespace
}  // namespace troupe
