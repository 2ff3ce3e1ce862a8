#include "model/train/data/held_out.hpp"

#include <algorithm>
#include <set>

#include <gtest/gtest.h>

namespace troupe {
namespace {

/// So many lines, each with so many examples.
training_data lines_of(std::size_t lines, std::size_t examples) {
  training_data data;
  for (std::size_t i = 0; i < lines * examples; ++i) {
    data.examples.push_back({.tokens = {1, 2}, .learned = {0, 1}});
    data.sources.push_back(i / examples);
  }
  return data;
}

TEST(held_out, is_all_of_a_line_or_nothing) {
  const training_data data = lines_of(60, 4);
  for (const std::uint64_t seed : {0, 1, 2}) {
    const auto drawn = draw_held_out(data, 0.2, seed);
    EXPECT_EQ(drawn.examples.size(), 48u);
    EXPECT_TRUE(std::is_sorted(drawn.examples.begin(), drawn.examples.end()));
    std::set<std::size_t> lines;
    for (const std::size_t example : drawn.examples) lines.insert(data.sources[example]);
    EXPECT_EQ(lines.size(), 12u);
    EXPECT_NE(drawn.fingerprint, 0u) << "an earlier build has drawn others";
  }
  EXPECT_NE(draw_held_out(data, 0.2, 0).fingerprint, draw_held_out(data, 0.2, 1).fingerprint);
}

TEST(held_out, is_what_it_always_was_where_each_line_is_an_example) {
  training_data data = lines_of(40, 1);
  const auto drawn = draw_held_out(data, 0.1, 11);
  EXPECT_EQ(drawn.examples.size(), 4u);
  EXPECT_EQ(drawn.fingerprint, 0u);
  data.sources.clear();
  EXPECT_EQ(draw_held_out(data, 0.1, 11).examples, drawn.examples);
}

TEST(held_out, is_drawn_one_by_one_of_a_long_text) {
  const training_data text = lines_of(1, 100);
  const auto drawn = draw_held_out(text, 0.05, 3);
  EXPECT_EQ(drawn.examples.size(), 5u);
  EXPECT_EQ(drawn.fingerprint, 0u) << "earlier builds have drawn the same";
  EXPECT_EQ(drawn.examples, draw_held_out(lines_of(100, 1), 0.05, 3).examples);
}

TEST(held_out, is_never_all_and_never_nothing) {
  EXPECT_TRUE(draw_held_out(lines_of(1, 1), 0.5, 0).examples.empty());
  EXPECT_TRUE(draw_held_out(lines_of(9, 2), 0, 0).examples.empty());
  EXPECT_EQ(draw_held_out(lines_of(20, 4), 0.001, 0).examples.size(), 4u) << "a whole line";
  EXPECT_EQ(draw_held_out(lines_of(2, 2), 0.99, 0).examples.size(), 3u);
}

}  // namespace
}  // namespace troupe
