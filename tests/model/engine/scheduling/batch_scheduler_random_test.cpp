// Random callers against the scheduler, with everything checked on the way.
#include <gtest/gtest.h>

#include <random>

#include "base/to_size.hpp"
#include "tests/base/sanitized.hpp"
#include "tests/model/engine/scheduling/symbolic_replica.hpp"

namespace troupe {
namespace {

using test::engine_simulation;

struct random_load {
  const char* name;
  batch_scheduler::options options;
  std::int64_t longest_prompt, longest_answer;
  int adapters, tenants, most_answers;
  double arrivals;  ///< per action
  double cancels;
  double losses;
  std::size_t guesses;
  std::uint64_t most_wait, most_batch_wait;  ///< steps without a share, of anyone
  bool ahead = false;                        ///< of each step, the next one is planned
};

batch_scheduler::options options_of(std::int32_t blocks, std::int64_t context, std::int32_t batch_tokens,
                                    std::int32_t sequences, std::int32_t adapters, std::int32_t stages,
                                    std::uint64_t patience) {
  batch_scheduler::options options;
  options.blocks = blocks;
  options.context = context;
  options.max_batch_tokens = batch_tokens;
  options.max_mixed_prompt_tokens = 1 + batch_tokens / 3;
  options.max_sequences = sequences;
  options.max_adapters = adapters;
  options.steps_in_flight = stages;
  options.adapter_patience = options.batch_patience = patience;
  options.head_patience = 8 * patience;
  options.urgent_tokens = 4;
  options.max_waiting = 60;
  return options;
}

/// The same load for a model that keeps states: less of what others computed is reused, so there is more to wait for.
random_load with_states(random_load load, const char* name, std::int32_t beginnings) {
  load.name = name;
  load.options.keeps_states = true;
  load.options.kept_beginnings = beginnings;
  load.options.worth_keeping = 16;
  load.most_wait *= 4;
  load.most_batch_wait *= 4;
  return load;
}

/// All but the first and the pipeline are asked for far more than they can do, and have to turn callers away.
std::vector<random_load> loads() {
  std::vector<random_load> all{
      {"roomy", options_of(400, 256, 128, 24, 4, 1, 64), 120, 40, 6, 3, 3, 0.15, 0.01, 0, 0, 200, 200},
      {"tiny_pool", options_of(13, 200, 48, 8, 2, 1, 16), 150, 60, 4, 3, 4, 0.04, 0.003, 0, 3, 2500, 9000},
      {"tiny_budget", options_of(60, 128, 4, 4, 1, 1, 16), 60, 20, 5, 2, 2, 0.03, 0.003, 0, 2, 2000, 4000},
      {"one_at_a_time", options_of(9, 144, 1, 1, 1, 1, 16), 40, 12, 3, 2, 1, 0.016, 0.003, 0, 1, 5000, 2500},
      {"pipeline", options_of(120, 256, 64, 24, 3, 3, 16), 120, 40, 6, 3, 3, 0.08, 0.01, 0, 2, 400, 500},
      {"tight_pipeline", options_of(16, 200, 32, 12, 2, 4, 8), 120, 60, 5, 3, 4, 0.03, 0.004, 0.0005, 4, 4000, 4000},
      {"many_answers", options_of(24, 128, 32, 12, 2, 2, 16), 30, 30, 2, 2, 12, 0.04, 0.01, 0.0005, 2, 500, 500},
      {"roomy_ahead", options_of(400, 256, 128, 24, 4, 1, 64), 120, 40, 6, 3, 3, 0.15, 0.01, 0.0005, 0, 200, 400, true},
      {"tiny_pool_ahead", options_of(13, 200, 48, 8, 2, 1, 16), 150, 60, 4, 3, 4, 0.04, 0.003, 0.0005, 0, 6000, 9000,
       true},
      {"tiny_budget_ahead", options_of(60, 128, 4, 4, 1, 1, 16), 60, 20, 5, 2, 2, 0.03, 0.003, 0, 2, 2000, 4000, true},
      {"alone_ahead", options_of(9, 144, 1, 1, 1, 1, 16), 40, 12, 3, 2, 1, 0.016, 0.003, 0, 0, 5000, 2500, true},
      {"many_answers_ahead", options_of(24, 128, 32, 12, 2, 1, 16), 30, 30, 2, 2, 12, 0.04, 0.01, 0.0005, 1, 500, 500,
       true},
  };
  const auto of = [&](std::string_view name) {
    return *std::find_if(all.begin(), all.end(), [&](const random_load& each) { return each.name == name; });
  };
  all.push_back(with_states(of("tiny_pool"), "states", 0));
  all.push_back(with_states(of("tiny_pool"), "one_beginning", 1));
  all.push_back(with_states(of("tiny_pool"), "beginnings", 5));
  all.push_back(with_states(of("tight_pipeline"), "pipeline_of_states", 3));
  all.push_back(with_states(of("many_answers"), "many_answers_by_states", 4));
  all.push_back(with_states(of("tiny_pool_ahead"), "states_ahead", 0));
  all.push_back(with_states(of("tiny_pool_ahead"), "beginnings_ahead", 5));
  all.push_back(with_states(of("many_answers_ahead"), "many_answers_by_states_ahead", 4));
  return all;
}

class random_calls {
 public:
  random_calls(const random_load& load, std::uint64_t seed) : load_(load), random_(seed), engine_(load.options) {
    engine_.stop_one_in = 50;
    engine_.guesses = load.guesses;
    for (int i = 0; i < 3; ++i) common_.push_back(tokens(256));
  }

  void act(int actions) {
    for (int i = 0; i < actions && !::testing::Test::HasFatalFailure(); ++i) {
      act();
      if (i % 64 == 0) {
        ASSERT_TRUE(engine_.scheduler.is_consistent());
      }
    }
  }

  void finish() {
    ASSERT_NO_FATAL_FAILURE(engine_.run_to_end());
    ASSERT_TRUE(engine_.scheduler.is_consistent());
    const block_pool& pool = engine_.scheduler.pool();
    EXPECT_EQ(pool.held(), 0);
    EXPECT_EQ(pool.free() + pool.idle(), pool.total());
    EXPECT_EQ(engine_.scheduler.stats().running + engine_.scheduler.stats().waiting, 0u);
    for (const auto& [id, one] : engine_.answers) {
      const bool batch = one.priority == request_priority::batch;
      ASSERT_LE(one.longest_wait, batch ? load_.most_batch_wait : load_.most_wait) << "sequence " << id;
    }
  }
  const engine_simulation& engine() const { return engine_; }

 private:
  std::int64_t below(std::int64_t limit) { return std::uniform_int_distribution<std::int64_t>(0, limit - 1)(random_); }
  bool chance(double probability) { return std::bernoulli_distribution(probability)(random_); }

  std::vector<token_id> tokens(std::int64_t count) {
    std::vector<token_id> made;
    for (std::int64_t i = 0; i < count; ++i) made.push_back(static_cast<token_id>(below(4)));
    return made;
  }

  /// Many prompts begin alike.
  std::vector<token_id> prompt() {
    const std::int64_t length = 1 + below(load_.longest_prompt);
    std::vector<token_id> made = tokens(length);
    if (chance(0.7)) {
      const auto& common = common_[to_size(below(3))];
      const std::int64_t same = below(length + 1);
      std::copy_n(common.begin(), same, made.begin());
    }
    return made;
  }

  void submit() {
    sequence_request request;
    request.prompt = prompt();
    request.max_tokens = chance(0.05) ? 0 : 1 + below(load_.longest_answer);
    if (request.max_tokens > 0 && chance(0.2))
      request.answers = static_cast<std::int32_t>(1 + below(load_.most_answers));
    request.priority = chance(0.4) ? request_priority::batch : request_priority::interactive;
    request.tenant = tenant_id{static_cast<std::uint64_t>(below(load_.tenants))};
    request.adapter = adapter_version{static_cast<std::uint32_t>(below(load_.adapters + 1))};
    request.every_prompt_row = chance(0.05);
    if (load_.losses > 0 && chance(0.1)) request.lost = {2, request.prompt.size() / 2};  // elsewhere
    engine_.submit(request);
  }

  void act() {
    // Busy and quiet times.
    if (chance(load_.arrivals * (++acts_ / 512 % 3 == 0 ? 3 : 1))) submit();
    if (chance(load_.cancels) && !engine_.answers.empty()) cancel_some();
    if (chance(load_.losses)) engine_.lose();
    const auto flying = engine_.flights.size();
    if (flying < to_size(load_.options.steps_in_flight) && (flying == 0 || chance(0.7)))
      engine_.plan();
    else if (load_.ahead && flying == 1 && chance(0.5))
      engine_.plan_ahead();
    if (chance(0.7)) engine_.run();
    if (!engine_.flights.empty() && chance(0.7)) {
      const auto last = load_.ahead ? 1 : static_cast<std::int64_t>(engine_.flights.size());
      const auto index = to_size(below(last));
      if (engine_.flights[index].ran) engine_.commit(index);
    }
  }

  /// Mostly such that came of late, several in a row.
  void cancel_some() {
    const auto last = static_cast<std::int64_t>(engine_.answers.size());
    const std::int64_t first = std::max<std::int64_t>(1, last - below(80));
    for (std::int64_t id = first; id <= std::min(last, first + below(3)); ++id)
      engine_.cancel(static_cast<std::uint64_t>(id));
  }

  random_load load_;
  std::mt19937_64 random_;
  engine_simulation engine_;
  std::vector<std::vector<token_id>> common_;
  int acts_ = 0;
};

class batch_scheduler_random : public ::testing::TestWithParam<random_load> {};

// The simulation behind it checks every step: budget, order of adapters, single writers, what the blocks hold.
TEST_P(batch_scheduler_random, keeps_every_promise) {
  constexpr std::uint64_t seeds = sanitized ? 1 : 12;
  std::uint64_t reused = 0, steps = 0;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    random_calls calls(GetParam(), seed);
    ASSERT_NO_FATAL_FAILURE(calls.act(4000));
    ASSERT_NO_FATAL_FAILURE(calls.finish());
    reused += calls.engine().scheduler.stats().reused_tokens;
    steps += calls.engine().steps;
  }
  EXPECT_EQ(reused == 0, GetParam().options.keeps_states && GetParam().options.kept_beginnings == 0);
  EXPECT_GT(steps, 600 * seeds);
}

INSTANTIATE_TEST_SUITE_P(loads, batch_scheduler_random, ::testing::ValuesIn(loads()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace troupe
