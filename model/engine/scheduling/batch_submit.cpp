// Who comes: what is refused at once, and what becomes of a request that is not.
#include <algorithm>
#include <chrono>

#include "base/to_size.hpp"
#include "model/engine/scheduling/batch_scheduler.hpp"

namespace troupe {

using detail::sequence_phase;

namespace {

/// Tokens of prompt and answer at most.
std::size_t limit_of(const sequence_request& request, std::int64_t context) {
  const auto prompt = static_cast<std::int64_t>(request.prompt.size());
  return to_size(prompt + std::min(request.max_tokens, context - prompt));
}

}  // namespace

result<accepted_request, refused_request> batch_scheduler::submit(sequence_request request) {
  if (const auto refused = check(request)) return *refused;
  const std::int32_t answers = request.answers;
  scheduled_sequence& leader = add_leader(std::move(request));
  for (std::int32_t i = 1; i < answers; ++i) leader.followers.push_back(&add_follower(leader));
  return accepted_request{leader.id, answers};
}

std::optional<refused_request> batch_scheduler::check(const sequence_request& request) const {
  const auto prompt = static_cast<std::int64_t>(request.prompt.size());
  const bool generates = request.max_tokens > 0;
  if (prompt == 0) return refused_request{refusal::empty_prompt};
  if (prompt + (generates ? 1 : 0) > options_.context) return refused_request{refusal::prompt_too_long};
  if (request.max_tokens < 0) return refused_request{refusal::bad_limit};
  if (request.answers < 1 || request.answers > (generates ? options_.max_sequences : 1))
    return refused_request{refusal::bad_answers};
  if (!could_ever_fit(request)) return refused_request{refusal::budget_too_small};
  if (request.adapter != no_adapter && options_.is_known && !options_.is_known(request.adapter))
    return refused_request{refusal::unknown_adapter};
  if (!request.was_accepted && waiting() >= options_.max_waiting)
    return refused_request{refusal::queue_full, retry_after()};
  return std::nullopt;
}

/// Whether the sequence fits at its longest if it has the pool for itself. The last token of an answer is never fed.
bool batch_scheduler::could_ever_fit(const sequence_request& request) const {
  const std::size_t positions = std::max(limit_of(request, options_.context) - 1, request.prompt.size());
  return blocks_for(positions) <= to_size(pool_.total());
}

/// The time in which an eighth of the queue will have started, at the recent pace.
duration batch_scheduler::retry_after() const {
  const auto ahead = static_cast<std::int64_t>(waiting() / 8 + 1);
  return std::clamp<duration>(pace_.interval * ahead, std::chrono::milliseconds(100), std::chrono::seconds(30));
}

void batch_scheduler::start_pace::note_start(instant now) {
  if (last) interval += ((now - *last) - interval) / 8;
  last = now;
}

batch_scheduler::scheduled_sequence& batch_scheduler::add() {
  const sequence_id id{++last_id_};
  scheduled_sequence& sequence = *sequences_.emplace(id, std::make_unique<scheduled_sequence>()).first->second;
  sequence.id = id;
  sequence.order = ++last_order_;
  return sequence;
}

batch_scheduler::scheduled_sequence& batch_scheduler::add_leader(sequence_request request) {
  scheduled_sequence& leader = add();
  leader.priority = request.priority;
  leader.adapter = request.adapter;
  leader.cache_salt = request.cache_salt;
  leader.limit = limit_of(request, options_.context);
  leader.prompt_tokens = request.prompt.size();
  leader.tokens = std::move(request.prompt);
  leader.every_prompt_row = request.every_prompt_row;
  suspects_.set(leader, request.lost);
  queue_of(leader).push(leader, request.tenant, request.weight);
  leader.use = &adapters_.wait(leader.adapter, step_);
  return leader;
}

batch_scheduler::scheduled_sequence& batch_scheduler::add_follower(scheduled_sequence& leader) {
  scheduled_sequence& follower = add();
  follower.priority = leader.priority;
  follower.adapter = leader.adapter;
  follower.cache_salt = leader.cache_salt;
  follower.limit = leader.limit;
  follower.prompt_tokens = leader.prompt_tokens;
  follower.every_prompt_row = leader.every_prompt_row;
  follower.leader = &leader;
  follower.phase = sequence_phase::following;
  queue_of(follower).join(follower, leader);
  return follower;
}

}  // namespace troupe
