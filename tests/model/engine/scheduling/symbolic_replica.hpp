#pragma once
#include <gtest/gtest.h>

#include <cstdint>
#include <deque>
#include <map>
#include <unordered_map>
#include <vector>

#include "base/to_size.hpp"
#include "model/engine/scheduling/batch_scheduler.hpp"

namespace troupe::test {

/// A replica without arithmetic. Instead of keys and values it stores, for each position, the hash of everything up to
/// there. So it notices at once if a block that is read holds anything but the sequence's own past. A state, of a model
/// that keeps them, is the hash of all that went into it.
class symbolic_replica {
 public:
  explicit symbolic_replica(std::int32_t blocks, std::int32_t states = 0)
      : storage_(to_size(blocks) * block_tokens), states_(to_size(states)) {}

  static std::uint64_t start_of(adapter_version adapter) { return 0x51ed270b1a4fULL + adapter.value; }
  static std::uint64_t after(std::uint64_t past, token_id token) {
    return folded_product(past ^ 0x9e3779b97f4a7c15ULL, static_cast<std::uint64_t>(token) * 2 + 0xd1342543de82ef95ULL);
  }
  /// The hash after each token.
  static std::vector<std::uint64_t> hashes_of(adapter_version adapter, const std::vector<token_id>& tokens) {
    std::vector<std::uint64_t> hashes;
    std::uint64_t past = start_of(adapter);
    for (const token_id token : tokens) hashes.push_back(past = after(past, token));
    return hashes;
  }

  /// Runs the plan, whose shares follow the tokens in `known_tokens`, those chosen by steps that ran among them. The
  /// past of every share must lie in its blocks.
  template <class KnownTokens>
  void run(const step_plan& plan, KnownTokens&& known_tokens) {
    for (const sequence_id gone : plan.forgotten) tables_.erase(gone);
    for (const block_copy& copy : plan.copies)
      for (std::size_t i = 0; i < block_tokens; ++i) slot(copy.to, i) = slot(copy.from, i);
    for (const state_copy& copy : plan.state_copies) states_.at(to_size(copy.to)) = states_.at(to_size(copy.from));
    for (const planned_share& share : plan.shares) run_share(plan, share, known_tokens(share.sequence));
  }
  const std::vector<block_id>& table(sequence_id sequence) { return tables_[sequence]; }
  std::size_t tables() const { return tables_.size(); }
  void lose_everything() {
    std::fill(storage_.begin(), storage_.end(), 0);
    std::fill(states_.begin(), states_.end(), 0);
    tables_.clear();
  }

 private:
  std::uint64_t& slot(block_id block, std::size_t i) { return storage_.at(to_size(block.value) * block_tokens + i); }
  std::uint64_t& position(const std::vector<block_id>& table, std::size_t at) {
    return slot(table.at(at / block_tokens), at % block_tokens);
  }

  void run_share(const step_plan& plan, const planned_share& share, const std::vector<token_id>& known) {
    std::vector<block_id>& table = tables_[share.sequence];
    ASSERT_GE(table.size(), to_size(share.kept_blocks));
    table.resize(to_size(share.kept_blocks));
    const auto added = plan.blocks_of(share);
    table.insert(table.end(), added.begin(), added.end());

    std::uint64_t past = start_of(share.adapter);
    const auto first = to_size(share.position);
    for (std::size_t i = 0; i < first; ++i) {
      past = after(past, known.at(i));
      ASSERT_EQ(position(table, i), past) << "sequence " << share.sequence.value << " position " << i;
    }
    if (!states_.empty()) {
      std::uint64_t& state = states_.at(to_size(share.state));
      if (first == 0) state = past;
      ASSERT_EQ(state, past) << "sequence " << share.sequence.value << " has another's state, or one of another place";
    }
    const auto tokens = plan.tokens_of(share);
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      const token_id token = tokens[i] == chosen_before ? known.at(first + i) : tokens[i];
      if (static_cast<std::int32_t>(i) < share.tokens - share.proposals) {
        ASSERT_EQ(token, known.at(first + i));
      }
      past = after(past, token);
      position(table, first + i) = past;
    }
    if (!states_.empty()) states_[to_size(share.state)] = past;
  }

  std::vector<std::uint64_t> storage_, states_;
  std::unordered_map<sequence_id, std::vector<block_id>> tables_;
};

/// A scheduler, a symbolic replica and callers. After every call all are checked against each other.
class engine_simulation {
 public:
  struct expected_answer {
    std::vector<token_id> tokens;
    std::vector<token_id> written;  ///< by steps that ran, whether or not they were committed
    bool finished = false;          ///< by such a step
    std::size_t prompt = 0;
    std::size_t limit = 0;
    adapter_version adapter;
    request_priority priority{};
    bool every_prompt_row = false;
    bool ended = false;
    std::uint64_t since = 0;         ///< the step of its last share, or in which it arrived
    std::uint64_t longest_wait = 0;  ///< in steps
    std::size_t shares = 0;
  };
  struct flight {
    step_plan plan;
    bool ran = false;
    std::deque<std::vector<token_id>> kept;
    std::vector<sequence_outcome> outcomes;  ///< of tokens kept here
  };

  explicit engine_simulation(const batch_scheduler::options& chosen)
      : options(chosen),
        scheduler(chosen),
        replica(chosen.blocks, chosen.keeps_states ? chosen.places_of_states() : 0) {}

  std::optional<accepted_request> submit(const sequence_request& request) {
    const auto done = scheduler.submit(request);
    if (!done) return std::nullopt;
    for (std::int32_t i = 0; i < done->answers; ++i) {
      expected_answer& answer = answers[done->first.value + static_cast<std::uint64_t>(i)];
      answer.tokens = answer.written = request.prompt;
      answer.prompt = request.prompt.size();
      answer.limit = request.prompt.size() + to_size(request.max_tokens);
      answer.limit = std::min(answer.limit, to_size(options.context));
      answer.adapter = request.adapter;
      answer.priority = request.priority;
      answer.every_prompt_row = request.every_prompt_row;
      answer.since = steps;
      ++alive;
    }
    return *done;
  }

  void cancel(std::uint64_t id) {
    expected_answer& answer = answers.at(id);
    ASSERT_EQ(scheduler.cancel(sequence_id{id}), !answer.ended);
    if (!answer.ended) end(answer);
  }

  /// Plans a step. Returns false if there is nothing to do.
  bool plan() {
    return plan([&](step_plan& plan) { return scheduler.plan_step(now, plan); });
  }
  /// Plans the one after the step in flight.
  bool plan_ahead() {
    return plan([&](step_plan& plan) { return scheduler.plan_ahead(now, plan); });
  }
  template <class Plan>
  bool plan(Plan with) {
    now = now + std::chrono::milliseconds(1);
    flight next;
    if (!spare.empty()) {
      next.plan = std::move(spare.back());
      spare.pop_back();
    }
    if (!with(next.plan)) return false;
    steps = next.plan.id.value;
    check_plan(next.plan);
    flights.push_back(std::move(next));
    return true;
  }

  /// Carries out the first planned step that has not run yet.
  void run() {
    for (flight& next : flights) {
      if (next.ran) continue;
      next.ran = true;
      replica.run(next.plan,
                  [&](sequence_id id) -> const std::vector<token_id>& { return answers.at(id.value).written; });
      for (const planned_share& share : next.plan.shares)
        for (const sequence_id id : next.plan.answers_of(share)) choose(share, id, next);
      return;
    }
  }
  /// What was stored is gone, and all steps in flight.
  void lose(life_end why = life_end::loss) {
    scheduler.forget_stored(why);
    replica.lose_everything();
    flights.clear();
    for (auto& [id, answer] : answers) {
      answer.written = answer.tokens;
      answer.finished = false;
    }
  }

  /// Commits one of the steps in flight, which must have run.
  void commit(std::size_t index) {
    flight done = std::move(flights[index]);
    flights.erase(flights.begin() + static_cast<std::ptrdiff_t>(index));
    for (const sequence_outcome& outcome : done.outcomes) {
      expected_answer& answer = answers.at(outcome.sequence.value);
      if (!answer.ended) answer.tokens.insert(answer.tokens.end(), outcome.tokens.begin(), outcome.tokens.end());
    }
    for (const ended_sequence& ended : scheduler.commit(done.plan.id, done.outcomes)) {
      expected_answer& answer = answers.at(ended.sequence.value);
      ASSERT_FALSE(answer.ended) << "ended twice";
      if (ended.reason == end_reason::length) {
        ASSERT_EQ(answer.tokens.size(), answer.limit);
      }
      end(answer);
    }
    spare.push_back(std::move(done.plan));
  }

  /// One whole step. Returns false if there is nothing to do.
  bool step() {
    if (!plan()) return false;
    run();
    commit(0);
    return true;
  }
  void run_to_end(std::size_t most = 100000) {
    while (most-- > 0 && !::testing::Test::HasFatalFailure()) {
      while (!flights.empty()) run(), commit(0);
      if (alive == 0) return;
      ASSERT_TRUE(step()) << alive << " sequences wait for ever";
    }
    ASSERT_EQ(alive, 0u);
  }

  /// The next token of one answer to a prompt.
  static token_id next_token(std::uint64_t past, std::uint64_t id) {
    return static_cast<token_id>((folded_product(past, 0xa0761d6478bd642fULL + id % 3) >> 7) % 4);
  }
  bool stops(std::uint64_t past) const { return stop_one_in != 0 && past % stop_one_in == 0; }

  batch_scheduler::options options;
  batch_scheduler scheduler;
  symbolic_replica replica;
  std::map<std::uint64_t, expected_answer> answers;
  std::deque<flight> flights;
  std::vector<step_plan> spare;
  instant now{std::chrono::seconds(1)};
  std::uint64_t steps = 0;
  std::size_t alive = 0;
  std::uint64_t stop_one_in = 0;
  std::size_t guesses = 0;  ///< how many guesses every step gets

 private:
  void end(expected_answer& answer) {
    answer.ended = true;
    --alive;
  }

  void choose(const planned_share& share, sequence_id id, flight& step) {
    expected_answer& answer = answers.at(id.value);
    std::vector<token_id>& tokens = step.kept.emplace_back();
    std::uint64_t past = symbolic_replica::hashes_of(answer.adapter, answer.written).back();
    const auto guessed = step.plan.tokens_of(share).last(to_size(share.proposals));
    for (std::size_t i = 0; share.logit_rows > 0 && i <= guessed.size() && !answer.finished; ++i) {
      tokens.push_back(next_token(past, id.value));
      past = symbolic_replica::after(past, tokens.back());
      answer.finished = stops(past);
      if (i < guessed.size() && guessed[i] != tokens.back()) break;
    }
    answer.written.insert(answer.written.end(), tokens.begin(), tokens.end());
    step.outcomes.push_back({id, tokens, answer.finished, make_guesses(past, id.value, step.kept)});
  }

  /// Makes guesses of which the first few are right.
  std::span<const token_id> make_guesses(std::uint64_t past, std::uint64_t id,
                                         std::deque<std::vector<token_id>>& kept) {
    std::vector<token_id>& guessed = kept.emplace_back();
    const std::size_t right = past % 4;
    for (std::size_t i = 0; i < guesses; ++i) {
      guessed.push_back(i < right ? next_token(past, id) : 5);
      past = symbolic_replica::after(past, guessed.back());
    }
    return guessed;
  }

  void check_plan(const step_plan& plan) {
    std::int64_t tokens = 0;
    std::vector<adapter_version> adapters;
    for (const planned_share& share : plan.shares) {
      tokens += share.tokens;
      ASSERT_GT(share.tokens, 0);
      if (adapters.empty() || adapters.back() != share.adapter) adapters.push_back(share.adapter);
      check_share(plan, share);
    }
    ASSERT_TRUE(std::is_sorted(adapters.begin(), adapters.end())) << "shares of one adapter are neighbours";
    const std::size_t with = adapters.size() - (adapters.front() == no_adapter ? 1 : 0);
    ASSERT_LE(with, to_size(options.max_adapters));
    ASSERT_LE(tokens, options.max_batch_tokens);
    check_prompt_share(plan);
    ASSERT_EQ(tokens, static_cast<std::int64_t>(plan.tokens.size()));
    ASSERT_LE(plan.shares.size(), to_size(options.max_sequences));
    check_writers(plan);
    if (options.keeps_states) check_states(plan);
  }

  static void check_states(const step_plan& plan) {
    std::vector<std::int32_t> states;
    for (const planned_share& share : plan.shares) {
      ASSERT_EQ(share.proposals, 0) << "a guess that could not be taken back";
      states.push_back(share.state);
    }
    std::sort(states.begin(), states.end());
    ASSERT_EQ(std::adjacent_find(states.begin(), states.end()), states.end()) << "two sequences have one state";
  }

  /// In a step with an interactive answer, each prompt has one token, and all share a bounded part of the rest.
  void check_prompt_share(const step_plan& plan) {
    const auto is_answer = [&](const planned_share& share) {
      const expected_answer& answer = answers.at(share.sequence.value);
      return share.tokens - share.proposals == 1 && share.position >= static_cast<std::int64_t>(answer.prompt);
    };
    bool somebody_reads = false;
    std::int64_t of_prompts = 0;
    for (const planned_share& share : plan.shares) {
      somebody_reads |= is_answer(share) && share.complete &&
                        answers.at(share.sequence.value).priority == request_priority::interactive;
      of_prompts += share.tokens - share.proposals - 1;
    }
    if (somebody_reads && options.max_mixed_prompt_tokens > 0) {
      ASSERT_LE(of_prompts, options.max_mixed_prompt_tokens);
    }
  }

  void check_share(const step_plan& plan, const planned_share& share) {
    expected_answer& answer = answers.at(share.sequence.value);
    const auto fed = to_size(share.position + share.tokens - share.proposals);
    const planned_share* before = flying_share_of(share.sequence);
    ASSERT_TRUE(before == nullptr || options.steps_in_flight == 1) << "steps of a pipeline have no sequence in common";
    const std::size_t known = answer.tokens.size() + (before != nullptr && before->complete ? 1 : 0);
    ASSERT_LE(fed, known);
    ASSERT_EQ(share.complete, fed == known);
    ASSERT_EQ(plan.tokens_of(share)[0] == chosen_before, fed > answer.tokens.size());
    ASSERT_TRUE(fed <= answer.tokens.size() || share.tokens == 1) << "guesses at what follows an unknown token";
    ASSERT_LE(to_size(share.position + share.tokens), std::max(answer.limit - 1, answer.prompt));
    if (share.logit_rows > 0) {
      ASSERT_EQ(share.logit_rows, 1 + share.proposals);
    }
    if (answer.every_prompt_row && answer.shares == 0) {
      ASSERT_EQ(share.position, 0);
    }
    for (const sequence_id id : plan.answers_of(share)) touch(answers.at(id.value));
    touch(answer);
  }
  /// The last step in flight that has the sequence.
  const planned_share* flying_share_of(sequence_id id) const {
    for (auto flying = flights.rbegin(); flying != flights.rend(); ++flying)
      for (const planned_share& share : flying->plan.shares)
        if (share.sequence == id) return &share;
    return nullptr;
  }

  void touch(expected_answer& answer) const {
    answer.longest_wait = std::max(answer.longest_wait, steps - answer.since);
    answer.since = steps;
    ++answer.shares;
  }

  /// Blocks that a step in flight writes must not be held by, or promised to, anybody else.
  void check_writers(const step_plan& plan) {
    for (const planned_share& share : plan.shares) {
      std::vector<block_id>& table = tables_[share.sequence];
      table.resize(to_size(share.kept_blocks));
      const auto added = plan.blocks_of(share);
      table.insert(table.end(), added.begin(), added.end());
      const auto first = to_size(share.position) / block_tokens;
      const auto end = blocks_for(to_size(share.position + share.tokens));
      ASSERT_LE(end, table.size());
      for (std::size_t i = first; i < end; ++i) {
        ASSERT_EQ(scheduler.pool().holders(table[i]), 1);
        ASSERT_FALSE(scheduler.pool().is_cached(table[i]));
      }
    }
    for (const sequence_id gone : plan.forgotten) tables_.erase(gone);
  }

  std::unordered_map<sequence_id, std::vector<block_id>> tables_;
};

}  // namespace troupe::test
