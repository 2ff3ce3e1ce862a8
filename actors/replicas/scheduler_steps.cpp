// Sends orders to the stages and takes their outcomes.
#include <algorithm>

#include "actors/replicas/scheduler_impl.hpp"

namespace troupe {
namespace {

/// Whether all tokens of an outcome are in the vocabulary, and its answers' ranges lie within its lists.
bool is_sound(const step_outcome& outcome, std::int64_t vocab_size) {
  const auto is_known = [&](token_id token) { return is_token(token, vocab_size); };
  const auto is_known_sample = [&](const sampled_token& sample) { return is_known(sample.token); };
  const auto lies_within = [&](const chosen_answer& answer) {
    return (!answer.ending || is_known_sample(*answer.ending)) &&
           lies_in(answer.first_token, answer.tokens, outcome.tokens.size()) &&
           lies_in(answer.first_proposal, answer.proposals, outcome.proposals.size());
  };
  return (outcome.details.empty() || outcome.details.size() == outcome.tokens.size()) &&
         std::all_of(outcome.tokens.begin(), outcome.tokens.end(), is_known) &&
         std::all_of(outcome.proposals.begin(), outcome.proposals.end(), is_known) &&
         std::all_of(outcome.scored.begin(), outcome.scored.end(), is_known_sample) &&
         std::all_of(outcome.answers.begin(), outcome.answers.end(), lies_within);
}

}  // namespace

void scheduler_state::pump() {
  if (running_) {
    move_adapters();
    while (in_flight_.size() < steps_in_flight_ && requests_->plan_step(clock_.now(), order_)) send_order();
    // Otherwise no step would come whose end has an adapter loaded that was only now asked for.
    if (in_flight_.empty() && residency_->is_anybody_waiting()) move_adapters();
  }
  tell_ended();
}

void scheduler_state::tell_ended() {
  if (!ended_.empty()) tell(parts_.router, requests_ended{parts_.replica, std::exchange(ended_, {})});
}

/// A step will soon be done, and its stage goes on by itself: it needs an order more than its outcome has to be known.
void scheduler_state::plan_ahead_of(step_id step) {
  if (stages_.size() != 1 || in_flight_.size() != 1 || in_flight_.front().step != step) return;
  move_adapters();
  if (requests_->plan_ahead(clock_.now(), order_)) send_order();
}

void scheduler_state::send_order() {
  flight& sent = in_flight_.emplace_back();
  sent.step = order_.plan.id;
  for (const planned_share& share : order_.plan.shares)
    if (share.complete)
      for (const sequence_id id : order_.plan.answers_of(share))
        sent.answers.push_back({id, std::min(share.logit_rows, 1), share.proposals + 1});
  send_openings_ahead();
  tell_stages(run_step{life_, order_});
  note_flights();
}

/// What the answers of one step bring along may be more than one frame holds: the excess is sent before the order
/// itself. Only the last stage needs it.
void scheduler_state::send_openings_ahead() {
  for (;;) {
    run_step part{life_, {}, true};
    part.step.opened = take_excess(order_.opened);
    if (part.step.opened.empty()) return;
    for (const worker_actor& worker : stages_.back()) tell(worker, part);
  }
}

void scheduler_state::note_flights() {
  meter_.note_steps(in_flight_.size(), steps_in_flight_, clock_.now());
}

/// Whether an outcome answers the oldest order. It comes from another process, so nothing in it is believed unchecked.
bool scheduler_state::is_expected(const step_outcome& outcome) const {
  if (in_flight_.empty() || in_flight_.front().step != outcome.step) return false;
  const auto is_awaited = [](const chosen_answer& answer, const awaited_answer& awaited) {
    return answer.sequence == awaited.sequence && answer.tokens <= awaited.most &&
           (answer.tokens >= awaited.least || answer.finished);
  };
  const auto& awaited = in_flight_.front().answers;
  return is_sound(outcome, parts_.vocab_size) &&
         std::equal(outcome.answers.begin(), outcome.answers.end(), awaited.begin(), awaited.end(), is_awaited);
}

void scheduler_state::finish_step(const step_done& done) {
  in_flight_.pop_front();
  note_flights();
  for (const chosen_answer& answer : done.outcome.answers) note_timing(answer.sequence);
  requests_->commit(
      done.outcome, [this](const engine_token& token) { note_token(token); },
      [this](const ended_sequence& ended) { note_end(ended); },
      [this](const engine_reading& reading) { note_reading(reading); });
}

/// The entry of an answer in the step's message. The search starts at the end, since tokens of one answer come one
/// after the other.
answer_tokens& scheduler_state::entry_of(const tracked_answer& answer) {
  auto& answers = tokens_.answers;
  const auto is_its = [&](const answer_tokens& a) { return a.request == answer.request && a.index == answer.index; };
  const auto found = std::find_if(answers.rbegin(), answers.rend(), is_its);
  return found != answers.rend()
             ? *found
             : answers.emplace_back(answer_tokens{.request = answer.request, .index = answer.index});
}

void scheduler_state::note_token(const engine_token& token) {
  const auto found = answers_.find(token.sequence);
  if (found == answers_.end()) return;
  found->second.held_until = {};
  answer_tokens& entry = entry_of(found->second);
  entry.tokens.push_back(token.token);
  if (token.details) entry.details.push_back(*token.details);
  meter_.note_token();
}

void scheduler_state::note_reading(const engine_reading& reading) {
  const auto found = answers_.find(reading.sequence);
  if (found == answers_.end()) return;
  answer_tokens& entry = entry_of(found->second);
  entry.hidden.assign(reading.hidden.begin(), reading.hidden.end());
  entry.scored.assign(reading.scored.begin(), reading.scored.end());
  if (reading.ending) entry.ending = *reading.ending;
}

/// With the first thing that became of an answer, be it that it ends.
void scheduler_state::note_timing(sequence_id id) {
  const auto found = answers_.find(id);
  if (found == answers_.end() || std::exchange(found->second.timed, true)) return;
  const tracked_answer& answer = found->second;
  if (const auto started = requests_->decisions().start_of(id))
    entry_of(answer).timing = answer_timing{.queued = started->at - answer.accepted,
                                            .prefill = clock_.now() - started->at,
                                            .cached_tokens = static_cast<std::int64_t>(started->reused)};
}

void scheduler_state::note_end(const ended_sequence& ended) {
  const auto found = answers_.find(ended.sequence);
  if (found == answers_.end()) return;
  entry_of(found->second).end = ended.reason;
  end_answer(ended.sequence);
}

void scheduler_state::tell_tokens() {
  if (!tokens_.answers.empty()) tell(sink_, std::exchange(tokens_, {}));
}

}  // namespace troupe
