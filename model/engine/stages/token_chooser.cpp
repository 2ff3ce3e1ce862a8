#include "model/engine/stages/token_chooser.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/error.hpp"
#include "model/engine/sampling/prompt_lookup.hpp"

namespace troupe {

struct token_chooser::answer {
  sampling_params sampling;
  std::vector<token_id> end_tokens;
  sampling_history history;
  std::vector<token_id> text;  // prompt and answer so far: where guesses are looked up
  std::int64_t prompt_tokens = 0;
  std::optional<answer_form> form;
  bool impossible = false;   // its constraint cannot be kept
  std::uint64_t listed = 0;  // when it got a turn last

  std::span<const token_id> written() const { return std::span(text).subspan(static_cast<std::size_t>(prompt_tokens)); }
  bool ends_with(token_id token) const {
    const auto in = [&](const std::vector<token_id>& list) {
      return std::find(list.begin(), list.end(), token) != list.end();
    };
    return in(sampling.stop_tokens) || (!sampling.ignore_eos && in(end_tokens));
  }
  bool is_full() const { return static_cast<std::int64_t>(text.size()) - prompt_tokens >= sampling.max_tokens; }
};

/// What one answer gets in a step. Threads work on several at a time.
struct token_chooser::turn {
  const planned_row* row = nullptr;
  answer* of = nullptr;
  bool largest = false;  // it is in the list of those whose largest logit is enough
  std::size_t first_row = 0;
  chosen_answer chosen;
  std::vector<sampled_token> details;
};

token_chooser::token_chooser(const compute& with, std::int64_t vocab_size, int lookup_tokens, token_tree_source tokens)
    : pool_(with.pool),
      vocab_size_(static_cast<std::size_t>(vocab_size)),
      lookup_tokens_(static_cast<std::size_t>(lookup_tokens)),
      tokens_(std::move(tokens)) {
  for (int thread = 0; thread < with.pool.threads(); ++thread) samplers_.emplace_back(with.kernels);
}

token_chooser::~token_chooser() = default;

void token_chooser::open(const answer_opening& opening) {
  for (const auto& [sequence, index] : opening.answers) answers_[sequence] = open_one(opening, index);
}

std::unique_ptr<token_chooser::answer> token_chooser::open_one(const answer_opening& opening, std::uint32_t index) {
  auto opened = std::make_unique<answer>();
  const auto text = std::span(opening.text);
  const auto prompt = static_cast<std::size_t>(opening.prompt_tokens);
  opened->sampling = opening.sampling;
  opened->sampling.seed += index;
  opened->end_tokens = opening.end_tokens;
  opened->history = sampling_history(opening.sampling, text.first(prompt), text.subspan(prompt));
  opened->text = opening.text;
  opened->prompt_tokens = opening.prompt_tokens;
  if (opening.sampling.constraint) give_form(*opened, opening);
  return opened;
}

/// Constraints were checked where they came in. One that this node cannot keep all the same, because its tokenizer is
/// gone, ends its own answer and disturbs no other.
void token_chooser::give_form(answer& to, const answer_opening& opening) {
  try {
    if (!constraints_) constraints_ = std::make_unique<constraint_store>(tokens_ ? tokens_() : nullptr);
    to.form.emplace(constraints_->get(opening.sampling.constraint), opening.sampling, opening.end_tokens, to.written());
  } catch (const input_error&) {
    to.impossible = true;
  }
}

void token_chooser::close(sequence_id answer) {
  answers_.erase(answer);
}

void token_chooser::close_all() {
  answers_.clear();
}

void token_chooser::list_rows(const step_plan& plan, bool finds_largest, std::vector<int>& rows,
                              std::vector<int>& largest_of) {
  rows.clear();
  largest_of.clear();
  turns_.clear();
  ++lists_;
  for (const planned_row& row : plan.rows) {
    const std::size_t first = turns_.size();
    const bool largest = list_turns(plan, row) && finds_largest;
    std::vector<int>& list = largest ? largest_of : rows;
    for (std::size_t i = first; i < turns_.size(); ++i) turns_[i].largest = largest, turns_[i].first_row = list.size();
    for (int i = row.tokens - row.logit_rows; i < row.tokens; ++i) list.push_back(row.first_token + i);
  }
}

/// True if no answer wants more of the row than its largest logit. An answer gets one turn even if the plan names it
/// twice: two threads must not have it.
bool token_chooser::list_turns(const step_plan& plan, const planned_row& row) {
  bool largest = true;
  for (const sequence_id id : plan.answers_of(row)) {
    const auto found = answers_.find(id);
    if (!row.complete || found == answers_.end()) continue;
    answer& of = *found->second;
    if (std::exchange(of.listed, lists_) == lists_) continue;
    turn& made = turns_.emplace_back();
    made.row = &row;
    made.of = &of;
    made.chosen.sequence = id;
    largest = largest && wants_largest(of.sampling);
  }
  return largest;
}

/// Answers under a constraint share what was found out about it, so one thread chooses for all of them.
void token_chooser::choose(const step_plan& plan, const chooser_readings& readings, step_outcome& outcome) {
  if (constraints_) constraints_->keep_within_bounds();
  for (turn& each : turns_)
    if (each.of->form) choose_for(plan, readings, each, samplers_.front());
  pool_.run(static_cast<int>(turns_.size()), [&](int i, int thread) {
    turn& each = turns_[static_cast<std::size_t>(i)];
    if (!each.of->form) choose_for(plan, readings, each, samplers_[static_cast<std::size_t>(thread)]);
  });
  outcome.clear();
  outcome.step = plan.id;
  for (turn& each : turns_) report(each, outcome);
  if (!outcome.details.empty()) outcome.details.resize(outcome.tokens.size());
}

/// Samples after each fed token for as long as the guesses hold: what is returned is what steps of one token would
/// give.
void token_chooser::choose_for(const step_plan& plan, const chooser_readings& readings, turn& now, sampler& by) const {
  const planned_row& row = *now.row;
  const auto fed = plan.tokens_of(row);
  answer& to = *now.of;
  for (int i = 0; i < row.logit_rows; ++i) {
    sampled_token next = next_of(readings, now, i, by);
    if (now.chosen.finished) {
      if (next.logprob) now.chosen.ending = std::move(next);
      break;
    }
    const token_id token = next.token;
    ++now.chosen.tokens;
    to.text.push_back(token);
    to.history.add(token);
    if (next.logprob) now.details.push_back(std::move(next));
    now.chosen.finished = to.form && to.form->add(to.written());
    if (now.chosen.finished) break;
    const auto following = static_cast<std::size_t>(row.tokens - row.logit_rows + i + 1);
    if (to.is_full() || following >= fed.size() || fed[following] != token) break;
  }
}

/// Says in `now` whether the answer ends instead.
sampled_token token_chooser::next_of(const chooser_readings& readings, turn& now, int row, sampler& by) const {
  const answer& to = *now.of;
  const std::size_t at = now.first_row + static_cast<std::size_t>(row);
  sampled_token next;
  if (now.largest) {
    next.token = readings.largest[at];
  } else {
    const auto allowed = to.form ? now.of->form->allowed(to.written()) : std::span<const std::uint64_t>();
    now.chosen.finished = to.impossible || (to.form && allowed.empty());
    if (now.chosen.finished) return next;
    const std::span<const float> logits(readings.logits + at * static_cast<std::size_t>(readings.stride), vocab_size_);
    next = by.sample(logits, to.sampling, to.history, to.text.size(), allowed);
  }
  now.chosen.finished = to.ends_with(next.token);
  return next;
}

/// Logprobs of one answer make the list as long as the tokens are; without any it stays empty.
void token_chooser::report(turn& done, step_outcome& outcome) const {
  const answer& of = *done.of;
  chosen_answer& chosen = outcome.answers.emplace_back(done.chosen);
  chosen.first_token = static_cast<std::int32_t>(outcome.tokens.size());
  chosen.first_proposal = static_cast<std::int32_t>(outcome.proposals.size());
  if (!done.details.empty()) outcome.details.resize(outcome.tokens.size());
  std::move(done.details.begin(), done.details.end(), std::back_inserter(outcome.details));
  outcome.tokens.insert(outcome.tokens.end(), of.text.end() - chosen.tokens, of.text.end());
  if (chosen.finished || of.is_full() || done.row->logit_rows == 0) return;
  if (lookup_tokens_ > 0) look_up(of.text, lookup_tokens_, outcome.proposals);
  chosen.proposals = static_cast<std::int32_t>(outcome.proposals.size()) - chosen.first_proposal;
}

}  // namespace troupe
