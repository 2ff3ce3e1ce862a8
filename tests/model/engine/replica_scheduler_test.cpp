// Promise 2's inner half: whatever the stages lose, and wherever a request goes on, its tokens stay the same.
#include "model/engine/replica_scheduler.hpp"
#include "base/to_size.hpp"

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "model/engine/stages/stage.hpp"
#include "tests/base/places.hpp"
#include "tests/model/arch/models.hpp"

namespace troupe {
namespace {

constexpr std::int32_t blocks = 200, batch_tokens = 48;

batch_scheduler::options small_replica() {
  batch_scheduler::options options;
  options.blocks = blocks;
  options.context = 160;
  options.max_batch_tokens = batch_tokens;
  options.max_sequences = 16;
  return options;
}

class lost_stages : public testing::Test {
 protected:
  explicit lost_stages(const char* model = "llama") : model_(load_for_test(test::golden / model, scheme::u8)) {}

  std::shared_ptr<const loaded_model> model_;
  thread_pool pool_{1};
  std::vector<float> hidden_;
  step_order order_;
  std::map<std::size_t, std::vector<token_id>> texts_;  // by request and answer
  std::map<sequence_id, std::size_t> names_;
  std::size_t ended_ = 0;
  std::map<std::size_t, std::size_t> scored_;  // of each prompt, the last time that it was told

  batch_scheduler::options small_replica() const {
    batch_scheduler::options options = troupe::small_replica();
    options.keeps_states = model_->config.keeps_states();
    options.kept_beginnings = 2;
    options.worth_keeping = 16;
    return options;
  }
  stage whole_model(int lookup_tokens = 3) {
    const decoder::options whole{
        .max_rows = batch_tokens, .blocks = blocks, .states = small_replica().places_of_states(), .context = 160};
    return stage(model_, whole, lookup_tokens, {pool_, kernels()});
  }

  std::vector<engine_request> requests() const {
    std::mt19937 random(3);
    std::vector<engine_request> all(12);
    for (std::size_t i = 0; i < all.size(); ++i) {
      engine_request& request = all[i];
      request.sequence.prompt.resize(1 + random() % 40);
      for (auto& t : request.sequence.prompt)
        t = static_cast<token_id>(random() % static_cast<unsigned>(model_->config.vocab_size));
      if (i % 3 == 1) request.sequence.prompt.resize(33, 7);
      if (i % 3 == 2) request.sequence.prompt = all[i - 1].sequence.prompt;  // of which it may find blocks
      if (i % 3 > 0) request.sampling.prompt_logprobs = 0;
      request.sequence.answers = i % 4 == 0 ? 2 : 1;
      request.sequence.max_tokens = request.sampling.max_tokens = 5 + static_cast<std::int64_t>(random() % 30);
      request.sampling.temperature = i % 2 ? 0.0 : 0.8;
      request.sampling.frequency_penalty = i % 3 ? 0.0 : 0.5;
      request.sampling.repetition_penalty = i % 5 ? 1.0 : 1.3;
      request.sampling.seed = i;
    }
    return all;
  }

  void submit_all(replica_scheduler& scheduler) {
    std::size_t name = 0;
    for (const engine_request& request : requests()) {
      const auto accepted = scheduler.submit(request);
      ASSERT_TRUE(accepted.ok());
      for (std::int32_t i = 0; i < accepted->answers; ++i)
        names_[sequence_id(accepted->first.value + static_cast<std::uint64_t>(i))] = name++;
    }
  }

  bool step(replica_scheduler& scheduler, stage& whole, bool lose_outcome = false) {
    if (!scheduler.plan_step({}, order_)) return false;
    const step_outcome& outcome = run(order_, whole);
    if (!lose_outcome) commit(scheduler, outcome);
    return true;
  }
  const step_outcome& run(const step_order& order, stage& whole) {
    hidden_.resize(to_size(batch_tokens * whole.hidden_stride()));
    whole.begin(order);
    whole.embed(hidden_.data());
    whole.run(hidden_.data());
    return whole.finish(hidden_.data());
  }
  void commit(replica_scheduler& scheduler, const step_outcome& outcome) {
    scheduler.commit(
        outcome, [&](const engine_token& t) { texts_[names_.at(t.sequence)].push_back(t.token); },
        [&](const ended_sequence&) { ++ended_; },
        [&](const engine_reading& reading) { scored_[names_.at(reading.sequence)] = reading.scored.size(); });
  }
  /// Steps, each ordered before the one before it has landed where that can be. Returns how many were.
  int go_ahead(replica_scheduler& scheduler, stage& whole, int most) {
    int ahead = 0;
    step_order next;
    for (bool has_next = false; most > 0 && (has_next || scheduler.plan_step({}, order_)); --most) {
      has_next = scheduler.plan_ahead({}, next);
      ahead += has_next;
      commit(scheduler, run(order_, whole));
      if (has_next) std::swap(order_, next);
    }
    return ahead;
  }

  std::map<std::size_t, std::vector<token_id>> undisturbed() {
    replica_scheduler scheduler(small_replica(), model_->config.vocab_size);
    stage part = whole_model();
    submit_all(scheduler);
    while (step(scheduler, part)) {
    }
    ended_ = 0;
    names_.clear();
    return std::exchange(texts_, {});
  }
};

class lost_stages_of_models : public lost_stages, public testing::WithParamInterface<const char*> {
 protected:
  lost_stages_of_models() : lost_stages(GetParam()) {}
};

INSTANTIATE_TEST_SUITE_P(models, lost_stages_of_models, testing::Values("llama", "qwen3.5", "lfm2"),
                         [](const auto& info) { return test_name(info.param); });

TEST_P(lost_stages_of_models, do_not_change_any_answer) {
  const auto expected = undisturbed();
  const auto scored = std::exchange(scored_, {});
  replica_scheduler scheduler(small_replica(), model_->config.vocab_size);
  submit_all(scheduler);
  for (bool busy = true; busy;) {
    stage part = whole_model();  // a new one every few steps: it knows nothing
    for (int i = 0; i < 6 && busy; ++i) busy = step(scheduler, part);
    if (busy) busy = step(scheduler, part, true);  // a step whose outcome never came
    scheduler.forget_stored();
    busy = ended_ < expected.size();
  }
  EXPECT_EQ(texts_, expected);
  EXPECT_EQ(ended_, expected.size());
  EXPECT_EQ(scored_, scored);
}

TEST_P(lost_stages_of_models, do_not_change_answers_of_steps_that_were_ordered_ahead) {
  const auto expected = undisturbed();
  const auto scored = std::exchange(scored_, {});
  replica_scheduler scheduler(small_replica(), model_->config.vocab_size);
  submit_all(scheduler);
  int ahead = 0;
  for (int steps = 3; ended_ < expected.size(); ++steps) {
    stage part = whole_model(0);
    ahead += go_ahead(scheduler, part, steps);  // the last one that was ordered never runs
    scheduler.forget_stored(life_end::planned);
  }
  EXPECT_GT(ahead, 20);
  EXPECT_EQ(texts_, expected);
  EXPECT_EQ(ended_, expected.size());
  EXPECT_EQ(scored_, scored);
}

TEST_F(lost_stages, are_not_caused_by_an_answer_that_ends_with_its_first_token) {
  engine_request ends;
  ends.sequence.prompt = {1, 2, 3};
  ends.sequence.max_tokens = ends.sampling.max_tokens = 9;
  ends.sampling.temperature = 0;
  for (token_id token = 0; token < model_->config.vocab_size; ++token) ends.end_tokens.push_back(token);
  engine_request goes_on = ends;
  goes_on.end_tokens.clear();
  replica_scheduler scheduler(small_replica(), model_->config.vocab_size);
  for (const engine_request& each : {ends, goes_on}) names_[scheduler.submit(each)->first] = names_.size();
  stage part = whole_model(0);
  EXPECT_GT(go_ahead(scheduler, part, 100), 5);
  EXPECT_EQ(ended_, 2u);
  ASSERT_EQ(texts_.size(), 1u);
  EXPECT_EQ(texts_.begin()->second.size(), 9u);
}

TEST_P(lost_stages_of_models, do_not_change_answers_that_go_on_elsewhere) {
  const auto expected = undisturbed();
  auto scheduler = std::make_unique<replica_scheduler>(small_replica(), model_->config.vocab_size);
  submit_all(*scheduler);
  while (ended_ < expected.size()) {
    stage part = whole_model();
    for (int i = 0; i < 5; ++i) step(*scheduler, part);
    auto next = std::make_unique<replica_scheduler>(small_replica(), model_->config.vocab_size);
    std::map<sequence_id, std::size_t> names;
    for (auto& [id, request] : scheduler->give_up_all()) {
      const auto accepted = next->submit(request);
      ASSERT_TRUE(accepted.ok());
      for (std::uint64_t i = 0; i < static_cast<std::uint64_t>(accepted->answers); ++i)
        names[sequence_id(accepted->first.value + i)] = names_.at(sequence_id(id.value + i));
    }
    names_ = names;
    EXPECT_EQ(scheduler->decisions().pool().held(), 0);
    scheduler = std::move(next);
  }
  EXPECT_EQ(texts_, expected);
}

TEST_P(lost_stages_of_models, and_full_ones_let_those_who_wait_go_on_elsewhere) {
  const auto expected = undisturbed();
  batch_scheduler::options options = small_replica();
  options.max_sequences = 2;
  replica_scheduler full(options, model_->config.vocab_size), empty(small_replica(), model_->config.vocab_size);
  submit_all(full);
  stage first = whole_model(), second = whole_model();
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(step(full, first));
  const auto here = names_;
  const std::size_t waiting = full.decisions().stats().waiting;
  EXPECT_TRUE(full.give_up_waiting(waiting, [](const engine_request&) { return false; }).empty());
  std::map<sequence_id, std::size_t> elsewhere;
  for (auto& [id, request] : full.give_up_waiting(2, [](const engine_request&) { return true; })) {
    const auto accepted = empty.submit(request);
    ASSERT_TRUE(accepted.ok());
    for (std::uint64_t i = 0; i < static_cast<std::uint64_t>(accepted->answers); ++i)
      elsewhere[sequence_id(accepted->first.value + i)] = here.at(sequence_id(id.value + i));
  }
  EXPECT_GE(elsewhere.size(), 2u);
  EXPECT_GT(full.decisions().stats().running, 0u);
  EXPECT_LT(full.decisions().stats().waiting, waiting);
  names_ = elsewhere;
  while (step(empty, second)) {
  }
  names_ = here;
  while (step(full, first)) {
  }
  EXPECT_EQ(texts_, expected);
}

TEST_F(lost_stages, are_told_of_nobody_who_was_cancelled_in_a_step) {
  replica_scheduler scheduler(small_replica(), model_->config.vocab_size);
  stage part = whole_model();
  submit_all(scheduler);
  for (int i = 0; i < 6; ++i) ASSERT_TRUE(step(scheduler, part));
  texts_.clear();
  ASSERT_TRUE(scheduler.plan_step({}, order_));
  const std::vector<sequence_id> asked = order_.plan.answers;
  ASSERT_FALSE(asked.empty());
  step_outcome outcome;
  outcome.step = order_.plan.id;
  for (const sequence_id id : asked) {
    outcome.answers.push_back({.sequence = id, .first_token = 0, .tokens = 1});
    scheduler.cancel(id);
  }
  outcome.tokens = {7};
  scheduler.commit(
      outcome, [&](const engine_token& t) { ADD_FAILURE() << "a token of " << t.sequence.value; },
      [&](const ended_sequence& e) { ADD_FAILURE() << "an end of " << e.sequence.value; },
      [&](const engine_reading& r) { ADD_FAILURE() << "a reading of " << r.sequence.value; });
  if (!scheduler.plan_step({}, order_)) return;
  for (const sequence_id id : asked)
    EXPECT_EQ(std::count(order_.closed.begin(), order_.closed.end(), id), 1) << "the last stage forgets it";
}

TEST_F(lost_stages, go_on_with_nobody_who_was_given_up) {
  replica_scheduler scheduler(small_replica(), model_->config.vocab_size);
  stage part = whole_model();
  submit_all(scheduler);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(step(scheduler, part));
  ASSERT_TRUE(step(scheduler, part, true));
  scheduler.forget_stored(life_end::loss);
  bool was_lost = false;
  for (const auto& [id, request] : scheduler.give_up_all()) was_lost |= request.sequence.lost.lives == 1;
  EXPECT_TRUE(was_lost) << "it stays known of a request elsewhere";
  EXPECT_FALSE(scheduler.plan_step({}, order_));
  EXPECT_TRUE(scheduler.give_up_all().empty());
}

/// Answers that lose their room at once compute their prompt again, each by itself.
TEST_F(lost_stages, or_lost_room_let_no_prompt_be_told_of_again) {
  engine_request several;
  several.sequence.prompt.assign(20, 7);
  several.sequence.answers = 3;
  several.sequence.max_tokens = several.sampling.max_tokens = 20;
  several.sampling.prompt_logprobs = 0;
  batch_scheduler::options options = small_replica();
  options.blocks = 3;
  replica_scheduler scheduler(options, model_->config.vocab_size);
  stage part = whole_model();
  const auto accepted = scheduler.submit(several);
  for (std::uint64_t i = 0; i < 3; ++i) names_[sequence_id(accepted->first.value + i)] = i;
  while (step(scheduler, part)) {
  }
  EXPECT_EQ(ended_, 3u);
  EXPECT_GT(scheduler.decisions().stats().preemptions, 0u);
  EXPECT_EQ(scored_, (std::map<std::size_t, std::size_t>{{0, 20}}));
}

/// What was told of a prompt is not asked again, so it may be found where it is stored.
TEST_F(lost_stages, do_not_make_a_prompt_be_computed_that_was_told_of_and_is_stored) {
  engine_request scored;
  scored.sequence.prompt.assign(40, 7);
  scored.sequence.max_tokens = scored.sampling.max_tokens = 20;
  scored.sampling.prompt_logprobs = 0;
  replica_scheduler scheduler(small_replica(), model_->config.vocab_size);
  stage part = whole_model();
  names_[scheduler.submit(scored)->first] = 0;
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(step(scheduler, part));
  auto given_up = scheduler.give_up_all_with({});  // what is stored stays
  ASSERT_EQ(given_up.size(), 1u);
  ASSERT_GT(given_up[0].rest.resumed, 0u);
  names_[scheduler.submit(given_up[0].rest)->first] = 0;
  ASSERT_TRUE(step(scheduler, part));
  EXPECT_EQ(scheduler.decisions().stats().reused_tokens, 32u);
}

TEST_F(lost_stages, leave_answers_together_that_wait_for_their_prompt) {
  engine_request several = requests().front();
  several.sequence.answers = 3;
  const auto given_up_after = [&](int steps) {
    replica_scheduler scheduler(small_replica(), model_->config.vocab_size);
    stage part = whole_model();
    const auto accepted = scheduler.submit(several);
    for (std::uint64_t i = 0; i < 3; ++i) names_[sequence_id(accepted->first.value + i)] = i;
    for (int i = 0; i < steps; ++i) EXPECT_TRUE(step(scheduler, part));
    std::vector<std::int32_t> answers;
    for (const auto& [id, request] : scheduler.give_up_all()) answers.push_back(request.sequence.answers);
    return answers;
  };
  EXPECT_EQ(given_up_after(0), std::vector{3});
  EXPECT_EQ(given_up_after(1), (std::vector{1, 1, 1}));
}

/// Who asks for several answers of a model that keeps states gets what those with a seed each would.
TEST_P(lost_stages_of_models, leave_several_answers_what_each_would_be_alone) {
  engine_request several = requests().front();
  several.sampling.temperature = 0.8;
  several.sequence.answers = 3;
  const auto texts_of = [&](const std::vector<engine_request>& asked) {
    names_.clear();
    replica_scheduler scheduler(small_replica(), model_->config.vocab_size);
    for (const engine_request& each : asked) {
      const auto accepted = scheduler.submit(each);
      for (std::int32_t i = 0; i < accepted->answers; ++i) names_[answer_behind(accepted->first, i)] = names_.size();
    }
    while (ended_ < 3) {
      stage part = whole_model();
      for (int i = 0; i < 5; ++i) step(scheduler, part);
      scheduler.forget_stored();
    }
    ended_ = 0;
    return std::exchange(texts_, {});
  };
  std::vector<engine_request> apart(3, several);
  for (std::size_t i = 0; i < 3; ++i) {
    apart[i].sequence.answers = 1;
    apart[i].sampling.seed += i;
  }
  const auto together = texts_of({several});
  EXPECT_EQ(together, texts_of(apart));
  EXPECT_NE(together.at(0), together.at(1));
}

}  // namespace
}  // namespace troupe
