#include "model/engine/stages/token_chooser.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/error.hpp"
#include "base/to_size.hpp"
#include "model/engine/sampling/grown_answer.hpp"
#include "model/engine/sampling/prompt_lookup.hpp"

namespace troupe {

struct token_chooser::open_answer : grown_answer {
  using grown_answer::grown_answer;

  bool ended = false;        // a step that was planned before that was known may still name it
  std::uint64_t listed = 0;  // when it got a turn last
};

/// What one answer gets in a step. Threads work on several at a time.
struct token_chooser::answer_turn {
  const planned_share* share = nullptr;
  open_answer* answer = nullptr;
  bool needs_largest = false;  // no more than that: its rows are in the list of those whose largest logit is enough
  std::size_t first_row = 0;
  chosen_answer chosen;
  std::vector<sampled_token> details;

  /// Nothing can follow.
  void end_of_form() {
    chosen.finished = true;
    chosen.cut = !answer->is_complete();
  }
};

token_chooser::token_chooser(const compute& with, std::int64_t vocab_size, int lookup_tokens, token_tree_source tokens)
    : pool_(with.pool),
      vocab_size_(to_size(vocab_size)),
      lookup_tokens_(to_size(lookup_tokens)),
      tokens_(std::move(tokens)) {
  for (int thread = 0; thread < with.pool.threads(); ++thread) samplers_.emplace_back(with.kernels);
}

token_chooser::~token_chooser() = default;

void token_chooser::open(const answer_opening& opening) {
  for (const auto& [sequence, index] : opening.answers) answers_[sequence] = opened(opening, index);
}

std::unique_ptr<token_chooser::open_answer> token_chooser::opened(const answer_opening& opening, std::uint32_t index) {
  sampling_params sampling = opening.sampling;
  sampling.seed += index;
  auto answer = std::make_unique<open_answer>(sampling, ends_of(sampling, opening.end_tokens), opening.text,
                                              to_size(opening.prompt_tokens));
  if (sampling.constraint) constrain(*answer);
  return answer;
}

/// Constraints were checked where they came in. One that this node cannot keep all the same, because its tokenizer is
/// gone, ends its own answer and disturbs no other.
void token_chooser::constrain(open_answer& answer) {
  try {
    if (!constraints_) constraints_ = std::make_unique<constraint_store>(tokens_ ? tokens_() : nullptr);
    answer.keep_to(constraints_->get(answer.params().constraint));
  } catch (const input_error&) {
  }
}

void token_chooser::close(sequence_id answer) {
  answers_.erase(answer);
}

void token_chooser::list_rows(const step_plan& plan, bool finds_largest, std::vector<int>& rows,
                              std::vector<int>& largest_of) {
  rows.clear();
  largest_of.clear();
  turns_.clear();
  ++lists_;
  for (const planned_share& share : plan.shares) {
    const std::size_t first_turn = turns_.size();
    const bool needs_largest = list_turns(plan, share) && finds_largest;
    std::vector<int>& list = needs_largest ? largest_of : rows;
    for (answer_turn& turn : std::span(turns_).subspan(first_turn)) {
      turn.needs_largest = needs_largest;
      turn.first_row = list.size();
    }
    for (int i = share.tokens - share.logit_rows; i < share.tokens; ++i) list.push_back(share.first_token + i);
  }
}

/// True if no answer wants more of the rows than their largest logits. An answer gets one turn even if the plan names
/// it twice: two threads must not have it.
bool token_chooser::list_turns(const step_plan& plan, const planned_share& share) {
  bool largest_is_enough = true;
  for (const sequence_id id : plan.answers_of(share)) {
    const auto found = answers_.find(id);
    if (!share.complete || found == answers_.end()) continue;
    open_answer& answer = *found->second;
    if (std::exchange(answer.listed, lists_) == lists_) continue;
    answer_turn& turn = turns_.emplace_back();
    turn.share = &share;
    turn.answer = &answer;
    turn.chosen.sequence = id;
    largest_is_enough = largest_is_enough && wants_largest(answer.params()) && answer.barred().empty();
  }
  return largest_is_enough;
}

/// Answers under a constraint share what was found out about it, so one thread chooses for all of them. To wake other
/// threads takes longer than to note tokens that are known.
void token_chooser::choose(const step_plan& plan, const chooser_readings& readings, step_outcome& outcome) {
  if (constraints_) constraints_->keep_within_bounds();
  shared_out_.clear();
  for (answer_turn& turn : turns_)
    if (turn.answer->has_form() || turn.needs_largest)
      take_turn(plan, readings, turn, samplers_.front());
    else
      shared_out_.push_back(&turn);
  pool_.run(static_cast<int>(shared_out_.size()), [&](int i, int thread) {
    take_turn(plan, readings, *shared_out_[to_size(i)], samplers_[to_size(thread)]);
  });
  outcome.clear();
  outcome.step = plan.id;
  for (answer_turn& turn : turns_) {
    turn.answer->ended = turn.chosen.finished;
    report(turn, outcome);
  }
  if (!outcome.details.empty()) outcome.details.resize(outcome.tokens.size());
}

/// Samples after each fed token for as long as the guesses hold: what is returned is what steps of one token would
/// give.
void token_chooser::take_turn(const step_plan& plan, const chooser_readings& readings, answer_turn& turn,
                              sampler& thread_sampler) const {
  const planned_share& share = *turn.share;
  const auto fed = plan.tokens_of(share);
  open_answer& answer = *turn.answer;
  turn.chosen.finished = answer.ended;
  for (int i = 0; i < share.logit_rows && !answer.ended; ++i) {
    std::optional<sampled_token> next = choose_token(readings, turn, i, thread_sampler);
    if (!next) return turn.end_of_form();
    const token_id token = next->token;
    if (answer.is_end(token)) {
      turn.chosen.finished = true;
      turn.chosen.ending = std::move(*next);
      return;
    }
    ++turn.chosen.tokens;
    const bool goes_on = answer.add(token);
    if (next->logprob) turn.details.push_back(std::move(*next));
    if (!goes_on) return turn.end_of_form();
    const auto following = to_size(share.tokens - share.logit_rows + i + 1);
    if (answer.is_full() || following >= fed.size() || fed[following] != token) break;
  }
}

/// None where nothing can follow.
std::optional<sampled_token> token_chooser::choose_token(const chooser_readings& readings, answer_turn& turn,
                                                         int logit_row, sampler& thread_sampler) const {
  const std::size_t index = turn.first_row + to_size(logit_row);
  if (turn.needs_largest) return sampled_token{.token = readings.largest[index]};
  const float* logits = readings.logits + index * to_size(readings.stride);
  return turn.answer->choose(thread_sampler, {logits, vocab_size_});
}

/// Logprobs of one answer make the list as long as the tokens are; without any it stays empty.
void token_chooser::report(answer_turn& turn, step_outcome& outcome) const {
  const open_answer& answer = *turn.answer;
  chosen_answer& chosen = outcome.answers.emplace_back(turn.chosen);
  chosen.first_token = static_cast<std::int32_t>(outcome.tokens.size());
  chosen.first_proposal = static_cast<std::int32_t>(outcome.proposals.size());
  if (!turn.details.empty()) outcome.details.resize(outcome.tokens.size());
  std::move(turn.details.begin(), turn.details.end(), std::back_inserter(outcome.details));
  const auto text = answer.text(), added = text.last(to_size(chosen.tokens));
  outcome.tokens.insert(outcome.tokens.end(), added.begin(), added.end());
  if (chosen.finished || answer.is_full() || turn.share->logit_rows == 0) return;
  if (lookup_tokens_ > 0) look_up(text, lookup_tokens_, outcome.proposals);
  chosen.proposals = static_cast<std::int32_t>(outcome.proposals.size()) - chosen.first_proposal;
}

}  // namespace troupe
