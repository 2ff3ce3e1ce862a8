#include "model/engine/scheduling/token_rules.hpp"

#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace troupe::detail {
namespace {

using enum request_priority;
using std::chrono::milliseconds;

constexpr token_rules::limits of_64_tokens{
    .max_batch_tokens = 64, .max_mixed_prompt_tokens = 16, .even_context = 100, .batch_share = 8};

/// That has so many tokens of its prompt still to compute.
scheduled_sequence prompt_of(std::size_t pending, request_priority priority = interactive) {
  scheduled_sequence sequence;
  sequence.priority = priority;
  sequence.tokens.resize(pending);
  sequence.prompt_tokens = pending;
  return sequence;
}

scheduled_sequence answer(request_priority priority) {
  scheduled_sequence sequence = prompt_of(10, priority);
  sequence.stored.computed = 10;
  sequence.tokens.resize(11);
  return sequence;
}

/// Beside these alone.
std::int64_t room_beside(request_priority priority, std::initializer_list<const scheduled_sequence*> running,
                         bool batch_waits = false) {
  return token_rules(of_64_tokens).room(priority, std::vector(running), {}, batch_waits);
}

TEST(token_rules, leave_newcomers_what_others_do_not_need) {
  const scheduled_sequence ten = prompt_of(10), three = prompt_of(3);
  EXPECT_EQ(room_beside(interactive, {}), 64);
  EXPECT_EQ(room_beside(interactive, {&ten, &three}), 51);
  EXPECT_EQ(room_beside(batch, {&ten, &three}), 51);
  const std::array running{&ten}, started{&three};
  EXPECT_EQ(token_rules(of_64_tokens).room(interactive, running, started, false), 51);
}

TEST(token_rules, leave_half_of_a_step_beside_long_prompts) {
  const scheduled_sequence book = prompt_of(500), batch_book = prompt_of(500, batch), ten = prompt_of(10);
  EXPECT_EQ(room_beside(interactive, {&book, &ten}), 22);
  EXPECT_EQ(room_beside(batch, {&batch_book, &ten}), 27) << "half of what those before batch leave";
}

TEST(token_rules, keep_a_share_for_batch_that_runs_or_waits) {
  const scheduled_sequence ten = prompt_of(10), three = prompt_of(3, batch), book = prompt_of(500);
  EXPECT_EQ(room_beside(interactive, {&ten, &three}), 46);
  EXPECT_EQ(room_beside(interactive, {&ten}, true), 46);
  EXPECT_EQ(room_beside(batch, {&book, &three}), 5) << "the share is all that it has";
}

TEST(token_rules, do_not_count_what_is_not_in_the_step) {
  scheduled_sequence stalled = prompt_of(10), flying = prompt_of(10), foreseen = prompt_of(10);
  stalled.stalled = true;
  flying.in_flight = foreseen.in_flight = step_id{7};
  foreseen.foreseen = true;
  EXPECT_EQ(room_beside(interactive, {&stalled, &flying}), 64);
  EXPECT_EQ(room_beside(interactive, {&foreseen}), 54);
}

TEST(token_rules, see_who_reads_an_answer_along) {
  const scheduled_sequence prompt = prompt_of(10), read = answer(interactive), unread = answer(batch);
  EXPECT_FALSE(token_rules::somebody_reads(std::array{&prompt, &unread}));
  EXPECT_TRUE(token_rules::somebody_reads(std::array{&prompt, &unread, &read}));
}

TEST(token_rules, give_prompts_less_beside_an_answer_that_is_read) {
  const token_rules rules(of_64_tokens);
  const scheduled_sequence first = prompt_of(40), second = prompt_of(500, batch), read = answer(interactive);
  const prompt_shares alone = rules.shares(std::array{&first, &second}, 62);
  EXPECT_EQ(alone.most_for(rules.class_of(first)), 54) << "an eighth is kept for batch";
  EXPECT_EQ(alone.most_for(rules.class_of(second)), 62);
  const prompt_shares beside = rules.shares(std::array{&first, &second, &read}, 61);
  EXPECT_EQ(beside.most_for(rules.class_of(first)), 14);
  EXPECT_EQ(beside.most_for(rules.class_of(second)), 16);
}

TEST(token_rules, learn_how_many_from_the_steps_that_somebody_waited_for) {
  token_rules rules({.max_batch_tokens = 2048, .max_mixed_prompt_tokens = 0, .even_context = 100, .batch_share = 8});
  const scheduled_sequence prompt = prompt_of(500), read = answer(interactive);
  const auto most = [&] { return rules.shares(std::array{&prompt, &read}, 2046).most_for(rules.class_of(prompt)); };
  EXPECT_EQ(most(), 96) << "nothing is known yet";
  instant now{};
  for (int i = 0; i < 200; ++i) {
    const mixed_step step{now, i % 3 == 0 ? 0 : most()};
    now = now + milliseconds(60) + milliseconds(3) * step.prompt_tokens;
    rules.note_time(step, now);
    rules.note_time(std::nullopt, now + milliseconds(1000));
  }
  EXPECT_NEAR(static_cast<double>(most()), 40, 2) << "a step is three times as long at most";
}

}  // namespace
}  // namespace troupe::detail
