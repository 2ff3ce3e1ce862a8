#include "model/engine/stages/hidden_pooler.hpp"

#include <gtest/gtest.h>

namespace troupe {
namespace {

constexpr std::int64_t row_stride = 4;

/// One prompt of rows with two values each: (1, 10), (2, 20) and so on.
class pooled_prompt : public testing::Test {
 protected:
  void open(hidden_pooling how) {
    answer_opening opening;
    opening.answers = {{sequence_id{1}, 0}};
    opening.sampling.pooling = how;
    pooler_.open(opening);
  }

  /// Computes some rows. What is told of the prompt; nothing before its last row.
  std::vector<float> step(std::int32_t from, std::int32_t count, bool complete) {
    step_plan plan;
    planned_share& share = plan.shares.emplace_back();
    share.sequence = sequence_id{1};
    share.position = from;
    share.tokens = count;
    share.complete = complete;
    std::vector<int> rows;
    pooler_.list_rows(plan, rows);
    std::vector<float> normed;
    for (const int listed : rows) {
      const auto number = static_cast<float>(from + listed + 1);
      normed.insert(normed.end(), {number, 10 * number, -1, -1});
    }
    step_outcome outcome;
    if (complete) outcome.answers.push_back({.sequence = sequence_id{1}});
    pooler_.take(plan, normed.data(), row_stride, outcome);
    if (!complete) return outcome.hidden;
    const auto told = outcome.hidden_of(outcome.answers[0]);
    return {told.begin(), told.end()};
  }

  hidden_pooler pooler_{2};
};

TEST_F(pooled_prompt, is_the_mean_of_all_its_rows_however_it_is_cut) {
  open(hidden_pooling::mean);
  EXPECT_TRUE(step(0, 2, false).empty());
  EXPECT_EQ(step(2, 1, true), (std::vector<float>{2, 20}));
}

TEST_F(pooled_prompt, begins_anew_after_it_was_pushed_out) {
  open(hidden_pooling::mean);
  (void)step(0, 2, false);
  (void)step(0, 1, false);
  EXPECT_EQ(step(1, 2, true), (std::vector<float>{2, 20}));
}

TEST_F(pooled_prompt, is_its_last_row_where_that_was_asked_for) {
  open(hidden_pooling::last);
  EXPECT_TRUE(step(0, 2, false).empty());
  EXPECT_EQ(step(2, 3, true), (std::vector<float>{5, 50}));
  EXPECT_EQ(step(4, 1, true), (std::vector<float>{5, 50})) << "the same when it is computed again from a cached start";
}

TEST_F(pooled_prompt, that_was_closed_is_not_told) {
  open(hidden_pooling::mean);
  pooler_.close(sequence_id{1});
  EXPECT_TRUE(step(0, 2, true).empty());
}

}  // namespace
}  // namespace troupe
