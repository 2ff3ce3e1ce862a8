#include "model/train/data/batch_plan.hpp"
#include "base/to_size.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace troupe {
namespace {

TEST(batch_plan, every_example_lies_in_one_row_of_each_epoch) {
  training_data data;
  for (std::size_t i = 0; i < 50; ++i) {
    const std::size_t size = 2 + i * 11 % 30;
    data.examples.push_back(
        {std::vector<token_id>(size, static_cast<token_id>(i)), std::vector<std::uint8_t>(size, 1)});
  }
  std::vector<std::size_t> all(50);
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = i;
  const batch_plan plan(data, all, {.row_length = 32, .batch_rows = 3, .accumulation = 2, .seed = 4});
  std::vector<std::vector<int>> orders;
  for (std::int64_t epoch = 0; epoch < 2; ++epoch) {
    std::vector<int> seen(50);
    auto& order = orders.emplace_back();
    for (std::int64_t step = 0; step < plan.steps_per_epoch(); ++step)
      for (const training_rows& batch : plan.step(epoch * plan.steps_per_epoch() + step)) {
        EXPECT_LE(batch.rows(), 3 * 32);
        for (const auto& segment : batch.segments) {
          const int example = batch.tokens[to_size(segment.first)];
          ++seen[to_size(example)];
          order.push_back(example);
        }
      }
    EXPECT_THAT(seen, testing::Each(1));
  }
  EXPECT_NE(orders[0], orders[1]);
  EXPECT_LE(plan.packed_rows(), 28);
}

TEST(batch_plan, a_pass_has_no_more_tokens_than_there_are_rows) {
  const training_data data{.examples = {{{1, 2, 3}, {0, 1, 1}}, {{4, 5, 6}, {0, 1, 1}}}};
  const std::vector<std::size_t> both{0, 1};
  const auto most = [&](std::int64_t rows) {
    return batch_plan(data, both, {.row_length = 2, .batch_rows = rows}).most_tokens();
  };
  EXPECT_EQ(most(1), 2);
  EXPECT_EQ(most(2), 4);
  EXPECT_EQ(most(4096), 4);
}

}  // namespace
}  // namespace troupe
