#include "bench/load.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace troupe::bench {
namespace {

std::vector<trace_request> even_trace(int count, std::int64_t prompt, std::int64_t answer) {
  std::vector<trace_request> trace;
  for (int i = 0; i < count; ++i) trace.push_back({i * 2.0, prompt, answer, {}});
  return trace;
}

TEST(load, lengths_are_scaled_to_the_context) {
  const auto load = load_of(even_trace(3, 3000, 1000), {.context = 400});
  ASSERT_EQ(load.size(), 3u);
  EXPECT_EQ(load[0].prompt.size(), 300u);
  EXPECT_EQ(load[0].answer, 100);
}

TEST(load, short_requests_do_not_grow) {
  const auto load = load_of(even_trace(1, 30, 10), {.context = 400});
  EXPECT_EQ(load[0].prompt.size(), 30u);
  EXPECT_EQ(load[0].answer, 10);
}

TEST(load, what_is_longer_than_the_context_loses_the_end_of_its_prompt) {
  auto trace = even_trace(1000, 30, 10);
  trace[5].prompt = 5000;
  trace[6].answer = 5000;
  const auto load = load_of(trace, {.context = 400});
  EXPECT_EQ(load[5].prompt.size(), 390u);
  EXPECT_EQ(load[6].answer, 200);
  for (const timed_request& request : load)
    EXPECT_LE(static_cast<std::int64_t>(request.prompt.size()) + request.answer, 400);
}

TEST(load, comes_at_the_traces_pace_or_at_once) {
  EXPECT_EQ(load_of(even_trace(3, 3, 1), {})[2].at, 0);
  EXPECT_EQ(load_of(even_trace(3, 3, 1), {.rate = 1})[2].at, 4);
  EXPECT_EQ(load_of(even_trace(3, 3, 1), {.rate = 8})[2].at, 0.5);
}

/// Blocks of 512 tokens become 32 each.
std::vector<trace_request> named_trace() {
  return {{0, 1536, 16, {1, 2, 3}}, {0, 1536, 16, {1, 2, 4}}, {0, 1024, 16, {1, 2}}, {0, 1024, 16, {2, 1}}};
}

TEST(load, equal_names_of_blocks_are_equal_tokens) {
  const auto load = load_of(named_trace(), {.context = 97});
  ASSERT_EQ(load[0].prompt.size(), 96u);
  const auto same = [&](std::size_t a, std::size_t b) {
    const auto [end, other] =
        std::mismatch(load[a].prompt.begin(), load[a].prompt.end(), load[b].prompt.begin(), load[b].prompt.end());
    return end - load[a].prompt.begin();
  };
  EXPECT_EQ(same(0, 1), 64);
  EXPECT_EQ(same(0, 2), 64);
  EXPECT_LT(same(0, 3), 8);
}

TEST(load, has_tokens_of_its_seed_and_the_lengths_of_its_trace) {
  for (const auto& trace : {named_trace(), even_trace(3, 30, 10)}) {
    const auto one = load_of(trace, {.context = 97, .seed = 1}), other = load_of(trace, {.context = 97, .seed = 2});
    for (std::size_t i = 0; i < trace.size(); ++i) {
      EXPECT_EQ(one[i].prompt.size(), other[i].prompt.size());
      EXPECT_NE(one[i].prompt, other[i].prompt);
    }
    EXPECT_EQ(repeated_tokens(one), repeated_tokens(other)) << "what requests of one load share";
  }
}

TEST(load, repeated_tokens_are_those_that_a_prefix_cache_can_find) {
  // 64 of the second; of the third all but the block of its last token; the fourth begins anew.
  EXPECT_EQ(repeated_tokens(load_of(named_trace(), {.context = 97})), 64 + 48);
  EXPECT_EQ(repeated_tokens(load_of(named_trace(), {.context = 97, .shared = false})), 0);
  EXPECT_EQ(prompt_tokens(load_of(named_trace(), {.context = 97})), 96 + 96 + 64 + 64);
}

TEST(load, an_adapter_has_a_past_of_its_own) {
  std::vector<timed_request> load(2);
  load[0].prompt = load[1].prompt = random_tokens(64, 100, 1);
  EXPECT_EQ(repeated_tokens(load), 48);
  load[1].adapter = adapter_version(1);
  EXPECT_EQ(repeated_tokens(load), 0);
}

TEST(load, adapters_take_turns_from_the_first_on) {
  EXPECT_EQ(adapter_in_turn(0, 2), adapter_version(1));
  EXPECT_EQ(adapter_in_turn(3, 2), adapter_version(2));
  EXPECT_EQ(adapter_in_turn(3, 0), no_adapter);
}

TEST(random_tokens, depend_on_the_seed_and_are_of_the_vocabulary) {
  const auto tokens = random_tokens(1000, 50, 1);
  EXPECT_EQ(tokens, random_tokens(1000, 50, 1));
  EXPECT_NE(tokens, random_tokens(1000, 50, 2));
  EXPECT_TRUE(std::all_of(tokens.begin(), tokens.end(), [](token_id token) { return token >= 0 && token < 50; }));
}

}  // namespace
}  // namespace troupe::bench
