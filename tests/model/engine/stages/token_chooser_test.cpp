// What is chosen depends on the rows alone: not on the threads, nor on who found the largest logit.
#include "model/engine/stages/token_chooser.hpp"
#include "base/to_size.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "model/ops/isa.hpp"

namespace troupe {
namespace {

constexpr std::int64_t vocab = 700, stride = 704;

/// A step of many answers, two guesses each, some of which hold.
struct many_answers {
  static constexpr int count = 40, rows_each = 3;
  step_plan plan;
  std::vector<answer_opening> openings;
  std::vector<float> logits;

  many_answers() : logits(to_size(count * rows_each * stride)) {
    std::mt19937 random(3);
    for (float& logit : logits) logit = static_cast<float>(random() % 40);  // many are equal
    for (int i = 0; i < count; ++i) {
      add_share(i);
      openings.push_back({{{sequence_id(static_cast<std::uint64_t>(i)), 0}}, sampling(i), {5}, {1, 2, 3, 4}, 2});
    }
  }

  void add_share(int i) {
    planned_share share;
    share.first_token = static_cast<std::int32_t>(plan.tokens.size());
    share.tokens = share.logit_rows = rows_each;
    share.complete = true;
    share.first_answer = static_cast<std::int32_t>(plan.answers.size());
    share.answers = 1;
    plan.shares.push_back(share);
    plan.answers.push_back(sequence_id(static_cast<std::uint64_t>(i)));
    plan.tokens.push_back(4);
    for (int guess = 0; guess < rows_each - 1; ++guess) plan.tokens.push_back(first_of_largest(i * rows_each + guess));
  }
  static sampling_params sampling(int i) {
    sampling_params params;
    params.temperature = i % 3 ? 0.0 : 0.8;
    params.top_k = i % 9 == 0 ? 1 : 0;
    params.frequency_penalty = i % 4 == 1 ? 0.5 : 0.0;
    if (i % 5 == 1) params.logprobs = 2;
    params.seed = static_cast<std::uint64_t>(i);
    return params;
  }
  token_id first_of_largest(int row) const {
    const auto begin = logits.begin() + row * stride;
    return static_cast<token_id>(std::max_element(begin, begin + vocab) - begin);
  }

  step_outcome chosen(int threads, bool finds_largest, std::size_t* found = nullptr) const {
    thread_pool pool(threads);
    token_chooser chooser({pool, kernels()}, vocab, 2, {});
    for (const answer_opening& opening : openings) chooser.open(opening);
    std::vector<int> rows, largest_of;
    chooser.list_rows(plan, finds_largest, rows, largest_of);
    std::vector<float> read;
    for (const int row : rows)
      read.insert(read.end(), logits.begin() + row * stride, logits.begin() + (row + 1) * stride);
    std::vector<token_id> largest;
    for (const int row : largest_of) largest.push_back(first_of_largest(row));
    step_outcome outcome;
    chooser.choose(plan, {read.data(), stride, largest.data()}, outcome);
    if (found) *found = largest.size();
    return outcome;
  }
};

void expect_equal(const step_outcome& a, const step_outcome& b) {
  EXPECT_EQ(a.tokens, b.tokens);
  EXPECT_EQ(a.proposals, b.proposals);
  ASSERT_EQ(a.answers.size(), b.answers.size());
  for (std::size_t i = 0; i < a.answers.size(); ++i) {
    EXPECT_EQ(a.answers[i].sequence, b.answers[i].sequence);
    EXPECT_EQ(a.answers[i].tokens, b.answers[i].tokens);
    EXPECT_EQ(a.answers[i].finished, b.answers[i].finished);
  }
  ASSERT_EQ(a.details.size(), b.details.size());
  for (std::size_t i = 0; i < a.details.size(); ++i) EXPECT_EQ(a.details[i].logprob, b.details[i].logprob);
}

TEST(token_choice, is_the_same_on_any_number_of_threads) {
  const many_answers step;
  const step_outcome expected = step.chosen(1, false);
  EXPECT_GT(expected.tokens.size(), to_size(many_answers::count)) << "some guesses should hold";
  EXPECT_EQ(expected.details.size(), expected.tokens.size());
  expect_equal(step.chosen(4, false), expected);
}

TEST(token_choice, is_the_same_whoever_finds_the_largest_logits) {
  const many_answers step;
  std::size_t found = 0;
  expect_equal(step.chosen(3, true, &found), step.chosen(1, false));
  EXPECT_GT(found, 0u);
  EXPECT_LT(found, to_size(many_answers::count * many_answers::rows_each));
}

TEST(token_choice, says_how_likely_the_end_was_where_logprobs_were_asked_for) {
  many_answers step;
  const auto is_told = [&](int answer) {
    step.logits[to_size(answer * many_answers::rows_each * stride + 5)] = 1000;
    const chosen_answer chosen = step.chosen(1, false).answers[to_size(answer)];
    EXPECT_TRUE(chosen.finished);
    EXPECT_EQ(chosen.tokens, 0);
    return chosen.ending && chosen.ending->token == 5 && chosen.ending->logprob == 0.0f;
  };
  EXPECT_TRUE(is_told(1));
  EXPECT_FALSE(is_told(2));
}

TEST(token_choice, says_which_token_ended_an_answer) {
  many_answers step;
  const std::size_t asked = 2;
  step.openings[asked].sampling.stop_tokens = {7};
  const auto ending = [&](token_id token, bool finds_largest) {
    many_answers now = step;
    now.logits[asked * many_answers::rows_each * stride + to_size(token)] = 1000;
    const chosen_answer chosen = now.chosen(1, finds_largest).answers[asked];
    EXPECT_TRUE(chosen.finished);
    return chosen.ending ? chosen.ending->token : token_id{-1};
  };
  for (const bool finds_largest : {false, true}) {
    EXPECT_EQ(ending(7, finds_largest), 7);
    EXPECT_EQ(ending(5, finds_largest), 5) << "the model's own";
  }
}

TEST(token_choice, bars_ends_from_answers_that_are_too_short_whoever_finds_the_largest_logits) {
  many_answers step;
  for (auto& opening : step.openings) opening.sampling.min_tokens = 4;  // they have two tokens
  const step_outcome expected = step.chosen(1, false);
  for (std::size_t end = 5; end < step.logits.size(); end += stride) step.logits[end] = 1000;
  std::size_t found = 0;
  const step_outcome barred = step.chosen(3, true, &found);
  EXPECT_EQ(found, 0u);
  int three_long = 0;
  for (std::size_t i = 0; i < barred.answers.size(); ++i) {
    const std::int32_t tokens = barred.answers[i].tokens;
    three_long += expected.answers[i].tokens > 2;
    EXPECT_EQ(tokens, std::min(expected.answers[i].tokens, 2)) << "after a guess that holds the third may be the end";
    EXPECT_EQ(barred.answers[i].finished, expected.answers[i].tokens > 2 || expected.answers[i].finished);
  }
  EXPECT_GT(three_long, 0);
}

TEST(token_choice, is_made_once_for_an_answer_that_a_plan_names_twice) {
  many_answers step;
  const step_outcome expected = step.chosen(1, false);
  step.logits.resize(step.logits.size() + many_answers::rows_each * stride);
  step.add_share(0);
  expect_equal(step.chosen(4, false), expected);
}

TEST(token_choice, says_how_likely_the_tokens_were_of_those_who_asked_alone) {
  const many_answers step;
  const step_outcome outcome = step.chosen(2, true);
  ASSERT_EQ(outcome.details.size(), outcome.tokens.size());
  for (std::size_t i = 0; i < outcome.answers.size(); ++i)
    for (std::int32_t t = 0; t < outcome.answers[i].tokens; ++t) {
      const auto at = to_size(outcome.answers[i].first_token + t);
      EXPECT_EQ(outcome.details[at].logprob.has_value(), i % 5 == 1);
      EXPECT_TRUE(i % 5 != 1 || outcome.details[at].token == outcome.tokens[at]);
    }
}

TEST(token_choice, guesses_how_each_answer_goes_on) {
  many_answers step;
  for (const int answer : {2, 4}) {
    auto& opening = step.openings[to_size(answer)];
    opening.sampling.temperature = 0.0;
    opening.sampling.frequency_penalty = 0.0;
    opening.text = {7, 8, 30 + answer, 50, 7};
    step.logits[to_size(answer * many_answers::rows_each * stride + 8)] = 1000;
  }
  const step_outcome outcome = step.chosen(2, false);
  for (const int answer : {2, 4}) {
    const auto guesses = outcome.proposals_of(outcome.answers[to_size(answer)]);
    EXPECT_EQ(std::vector(guesses.begin(), guesses.end()), (std::vector<token_id>{30 + answer, 50}));
  }
}

/// Of an answer that is resumed, they count as they did before.
TEST(token_choice, counts_the_tokens_that_an_answer_brings_along) {
  const auto chosen = [](auto penalty, double value) {
    many_answers step;
    const auto row = step.logits.begin() + 3 * many_answers::rows_each * stride;
    std::fill(row, row + vocab, 0.0f);
    row[2] = 4.0f;  // a token of the prompt
    row[4] = 5.0f;  // one that was written
    row[9] = 3.0f;
    sampling_params plain;
    plain.temperature = 0.0;
    plain.*penalty = value;
    step.openings[3].sampling = plain;
    const step_outcome outcome = step.chosen(1, false);
    return outcome.tokens_of(outcome.answers[3])[0];
  };
  EXPECT_EQ(chosen(&sampling_params::frequency_penalty, 0.0), 4);
  EXPECT_EQ(chosen(&sampling_params::frequency_penalty, 1.5), 2);
  EXPECT_EQ(chosen(&sampling_params::presence_penalty, 1.5), 2);
  EXPECT_EQ(chosen(&sampling_params::repetition_penalty, 2.0), 9) << "it counts the prompt, too";
}

TEST(token_choice, ends_an_answer_whose_constraint_this_node_cannot_keep_and_no_other) {
  many_answers step;
  const step_outcome expected = step.chosen(1, false);
  step.openings[3].sampling.constraint = {constraint_kind::regex, "a+"};  // there is no tokenizer
  const step_outcome outcome = step.chosen(2, false);
  for (std::size_t i = 0; i < outcome.answers.size(); ++i) {
    const chosen_answer& answer = outcome.answers[i];
    EXPECT_EQ(answer.cut, i == 3);
    if (i == 3)
      EXPECT_TRUE(answer.finished && answer.tokens == 0);
    else
      EXPECT_EQ(answer.tokens, expected.answers[i].tokens);
  }
}

TEST(token_chooser, gives_an_answer_that_has_ended_no_more_tokens) {
  thread_pool pool(1);
  token_chooser chooser({pool, kernels()}, vocab, 0, {});
  sampling_params greedy;
  greedy.temperature = 0.0;
  chooser.open({{{sequence_id(1), 0}}, greedy, {5}, {1, 2}, 2});
  step_plan plan;
  planned_share& share = plan.shares.emplace_back();
  share.tokens = share.logit_rows = share.answers = 1;
  share.complete = true;
  plan.answers = {sequence_id(1)};
  plan.tokens = {2};
  const auto chosen = [&](token_id largest) {
    std::vector<int> rows, largest_of;
    chooser.list_rows(plan, true, rows, largest_of);
    step_outcome outcome;
    chooser.choose(plan, {nullptr, stride, &largest}, outcome);
    return outcome;
  };
  EXPECT_EQ(chosen(7).tokens, std::vector<token_id>{7});
  for (const token_id largest : {5, 8}) {
    const step_outcome outcome = chosen(largest);
    EXPECT_TRUE(outcome.answers.at(0).finished);
    EXPECT_TRUE(outcome.tokens.empty());
  }
}

}  // namespace
}  // namespace troupe
