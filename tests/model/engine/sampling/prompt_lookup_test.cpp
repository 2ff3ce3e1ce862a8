#include "model/engine/sampling/prompt_lookup.hpp"

#include <gtest/gtest.h>

namespace troupe {
namespace {

using tokens = std::vector<token_id>;

tokens guesses(const tokens& text, std::size_t most = 3) {
  tokens found;
  look_up(text, most, found);
  return found;
}

TEST(guesses, are_what_followed_the_ending_before) {
  EXPECT_EQ(guesses({1, 2, 3, 4, 5, 6, 1, 2}), (tokens{3, 4, 5}));
  EXPECT_EQ(guesses({1, 2, 3, 4, 5, 6, 1, 2}, 1), tokens{3});
  EXPECT_EQ(guesses({1, 2, 3, 1, 2}), (tokens{3, 1, 2})) << "no more than there is";
}

TEST(guesses, follow_the_longest_ending_and_of_equal_ones_the_latest) {
  EXPECT_EQ(guesses({7, 1, 2, 30, 8, 1, 2, 40, 7, 1, 2}, 1), tokens{30});
  EXPECT_EQ(guesses({1, 2, 30, 1, 2, 40, 1, 2}, 1), tokens{40});
  EXPECT_EQ(guesses({9, 4, 5, 6, 7, 30, 8, 4, 5, 6, 7, 40, 9, 4, 5, 6, 7}, 1), tokens{40}) << "four tokens count";
  EXPECT_EQ(guesses({5, 5, 5}, 2), tokens{5}) << "an ending may overlap with itself";
}

TEST(guesses, are_none_where_nothing_repeats) {
  EXPECT_EQ(guesses({}), tokens{});
  EXPECT_EQ(guesses({1, 1}), tokens{});
  EXPECT_EQ(guesses({1, 2, 3, 2}), tokens{}) << "one token is no ending";
}

TEST(guesses, are_looked_for_in_the_last_tokens_of_a_long_text_alone) {
  tokens text = {1, 2, 3};
  for (token_id i = 0; text.size() < 4096 - 2; ++i) text.push_back(10 + i);
  text.insert(text.end(), {1, 2});
  EXPECT_EQ(guesses(text, 1), tokens{3});
  text.insert(text.end() - 2, {5, 6, 7});
  EXPECT_EQ(guesses(text, 1), tokens{});
}

}  // namespace
}  // namespace troupe
