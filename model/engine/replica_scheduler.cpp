#include "model/engine/replica_scheduler.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include "base/to_size.hpp"
#include "model/text/model_text.hpp"

namespace troupe {

struct replica_scheduler::answer {
  std::shared_ptr<const engine_request> request;  // of all answers to one prompt
  std::int32_t index = 0;                         // among them
  bool opened = false;                            // the last stage knows it
};

namespace {

/// What one answer must be asked for elsewhere to go on from `text`, its prompt and tokens so far.
engine_request resumed_request(const engine_request& request, std::int32_t index, std::span<const token_id> text) {
  engine_request rest = request;
  const std::size_t added = text.size() - request.sequence.prompt.size();
  rest.sequence.prompt.assign(text.begin(), text.end());
  rest.sequence.answers = 1;
  rest.sequence.was_accepted = true;
  if (added > 0) rest.sequence.every_prompt_row = false;  // what is read there came with the first token
  rest.sequence.max_tokens -= static_cast<std::int64_t>(added);
  rest.resumed += added;
  rest.sampling = request.sampling_from(text.size());
  rest.sampling.seed += static_cast<std::uint64_t>(index);  // it goes on as a prompt's only answer
  return rest;
}

}  // namespace

replica_scheduler::replica_scheduler(batch_scheduler::options options, std::int64_t vocab_size)
    : vocab_size_(vocab_size), decisions_(std::move(options)) {}

replica_scheduler::~replica_scheduler() = default;

result<accepted_request, refused_request> replica_scheduler::submit(engine_request request) {
  check(request.sampling, vocab_size_);
  check_prompt_tokens(request.sequence.prompt, vocab_size_);
  if (request.sampling.pooling != hidden_pooling::none) {
    request.sequence.max_tokens = 0;
    request.sequence.every_prompt_row = request.sampling.pooling == hidden_pooling::mean;
  }
  if (request.sampling.prompt_logprobs) request.sequence.every_prompt_row = true;
  const auto kept = std::make_shared<const engine_request>(std::move(request));
  auto accepted = decisions_.submit(kept->sequence);
  if (!accepted) return accepted;
  for (std::int32_t i = 0; i < accepted->answers; ++i) answers_[answer_behind(accepted->first, i)] = {kept, i};
  return accepted;
}

bool replica_scheduler::cancel(sequence_id id) {
  close(id);
  return decisions_.cancel(id);
}

void replica_scheduler::close(sequence_id id) {
  const auto found = answers_.find(id);
  if (found == answers_.end()) return;
  if (found->second.opened) closed_.push_back(id);
  answers_.erase(found);
}

bool replica_scheduler::plan_step(instant now, step_order& order) {
  return add_answers_to(order, decisions_.plan_step(now, order.plan));
}

bool replica_scheduler::plan_ahead(instant now, step_order& order) {
  return add_answers_to(order, decisions_.plan_ahead(now, order.plan));
}

/// Puts into the order what the last stage must know for its plan, if there is one.
bool replica_scheduler::add_answers_to(step_order& order, bool planned) {
  order.opened.clear();
  order.closed.clear();
  if (!planned) return false;
  std::swap(order.closed, closed_);
  open_answers(order);
  return true;
}

void replica_scheduler::open_answers(step_order& order) {
  for (const planned_share& share : order.plan.shares) {
    if (const auto found = answers_.find(share.sequence);
        found != answers_.end() && found->second.request->sequence.every_prompt_row)
      open_together({&share.sequence, 1}, share.sequence, order);  // opened with its first row, not with its last
    if (share.complete) open_together(order.plan.answers_of(share), share.sequence, order);
  }
}

/// One opening for all of them: what a request brings along may be long, and it may ask for many answers.
void replica_scheduler::open_together(std::span<const sequence_id> ids, sequence_id prompt, step_order& order) {
  std::vector<answer_seed> opened;
  std::shared_ptr<const engine_request> request;
  for (const sequence_id id : ids) {
    const auto found = answers_.find(id);
    if (found == answers_.end() || std::exchange(found->second.opened, true)) continue;
    request = found->second.request;
    opened.push_back({id, static_cast<std::uint32_t>(found->second.index)});
  }
  if (opened.empty()) return;
  const auto text = decisions_.text_of(prompt);
  order.opened.push_back({.answers = std::move(opened),
                          .sampling = request->sampling_from(text.size()),
                          .end_tokens = request->end_tokens,
                          .text = {text.begin(), text.end()},
                          .prompt_tokens = request->prompt_tokens()});
}

void replica_scheduler::commit(const step_outcome& outcome, const token_sink& on_token, const end_sink& on_end,
                               const reading_sink& on_reading) {
  outcomes_.clear();
  for (const chosen_answer& chosen : outcome.answers)
    outcomes_.push_back(
        {chosen.sequence, outcome.tokens_of(chosen), chosen.finished, outcome.proposals_of(chosen), chosen.cut});
  if (on_reading) tell_readings(outcome, on_reading);
  if (on_token) tell_tokens(outcome, on_token);
  for (const ended_sequence& ended : decisions_.commit(outcome.step, outcomes_)) {
    close(ended.sequence);
    if (on_end) on_end(ended);
  }
}

void replica_scheduler::tell_readings(const step_outcome& outcome, const reading_sink& on_reading) {
  for (const chosen_answer& chosen : outcome.answers)
    if ((chosen.hidden > 0 || chosen.scored > 0 || chosen.ending) && answers_.contains(chosen.sequence))
      on_reading({.sequence = chosen.sequence,
                  .hidden = outcome.hidden_of(chosen),
                  .scored = outcome.scored_of(chosen),
                  .ending = chosen.ending ? &*chosen.ending : nullptr});
}

void replica_scheduler::tell_tokens(const step_outcome& outcome, const token_sink& on_token) {
  for (const chosen_answer& chosen : outcome.answers) {
    if (!answers_.contains(chosen.sequence)) continue;  // cancelled meanwhile
    const auto first = to_size(chosen.first_token);
    for (std::size_t i = first; i < first + to_size(chosen.tokens); ++i) {
      const sampled_token* details = outcome.details.empty() ? nullptr : &outcome.details[i];
      on_token({chosen.sequence, outcome.tokens[i], details && details->logprob ? details : nullptr});
    }
  }
}

void replica_scheduler::forget_stored(life_end why) {
  decisions_.forget_stored(why);
  closed_.clear();
  for (auto& [id, kept] : answers_) kept.opened = false;
}

given_up_requests replica_scheduler::give_up_all() {
  forget_stored();
  std::vector<sequence_id> ids;
  for (const auto& [id, kept] : answers_) ids.push_back(id);
  return give_up(std::move(ids));
}

given_up_requests replica_scheduler::give_up_all_with(adapter_version adapter) {
  std::vector<sequence_id> ids;
  for (const auto& [id, kept] : answers_)
    if (kept.request->sequence.adapter == adapter) ids.push_back(id);
  return give_up(std::move(ids));
}

given_up_requests replica_scheduler::give_up_waiting(std::size_t most, const permission& may_go) {
  std::vector<sequence_id> ids;
  for (const auto& [id, kept] : answers_)
    if (decisions_.is_waiting(id) && may_go(*kept.request)) ids.push_back(id);
  return give_up(std::move(ids), most);
}

/// The oldest of them, about `most`. All answers to a prompt that is not computed yet are among them, or none.
given_up_requests replica_scheduler::give_up(std::vector<sequence_id> ids, std::size_t most) {
  std::sort(ids.begin(), ids.end());
  given_up_requests all;
  std::size_t taken = 0;
  for (; taken < std::min(most, ids.size()); taken += to_size(all.back().rest.sequence.answers))
    all.push_back({ids[taken], rest_of(ids[taken])});
  ids.resize(std::min(taken, ids.size()));
  for (const sequence_id id : ids) cancel(id);
  return all;
}

engine_request replica_scheduler::rest_of(sequence_id id) const {
  const answer& kept = answers_.at(id);
  const engine_request& request = *kept.request;
  const auto text = decisions_.text_of(id);
  engine_request rest = resumed_request(request, kept.index, text.empty() ? std::span(request.sequence.prompt) : text);
  if (kept.index == 0 && waits_for_prompt(id)) rest.sequence.answers = request.sequence.answers;
  rest.sequence.lost = decisions_.lost_with(id);
  return rest;
}

/// Whether all answers to a prompt, of which this is the first, still wait until it is computed.
bool replica_scheduler::waits_for_prompt(sequence_id first) const {
  const std::int32_t answers = answers_.at(first).request->sequence.answers;
  for (std::int32_t i = 1; i < answers; ++i) {
    const sequence_id other = answer_behind(first, i);
    if (!answers_.contains(other) || !decisions_.text_of(other).empty()) return false;
  }
  return true;
}

}  // namespace troupe
