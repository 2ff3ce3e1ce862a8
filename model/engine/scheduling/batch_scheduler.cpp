#include "model/engine/scheduling/batch_scheduler.hpp"

#include <algorithm>
#include <cassert>

#include "base/error.hpp"

namespace troupe {

using detail::sequence_phase;

std::string_view name_of(refusal reason) {
  switch (reason) {
    case refusal::empty_prompt:
      return "the prompt is empty";
    case refusal::prompt_too_long:
      return "the prompt leaves no room in the context";
    case refusal::bad_limit:
      return "the number of tokens is negative";
    case refusal::bad_answers:
      return "so many answers cannot be given";
    case refusal::budget_too_small:
      return "the memory for keys and values cannot hold the sequence";
    case refusal::unknown_adapter:
      return "there is no such adapter";
    case refusal::queue_full:
      return "the queue is full";
  }
  return "unknown";
}

namespace {

batch_scheduler::options checked(batch_scheduler::options chosen) {
  if (chosen.blocks < 1) refuse("the memory for keys and values holds {} blocks: give it more", chosen.blocks);
  if (chosen.context < 2) refuse("a context of {} tokens is too short: at least 2", chosen.context);
  if (chosen.max_sequences < 1) refuse("max_sequences is {}: at least 1", chosen.max_sequences);
  if (chosen.max_batch_tokens < chosen.max_sequences)
    refuse("max_batch_tokens ({}) is below max_sequences ({}): every sequence needs a token of each step",
           chosen.max_batch_tokens, chosen.max_sequences);
  if (chosen.max_mixed_prompt_tokens < 1)
    refuse("max_mixed_prompt_tokens is {}: at least 1", chosen.max_mixed_prompt_tokens);
  if (chosen.even_context < 1) refuse("even_context is {}: at least 1", chosen.even_context);
  if (chosen.max_adapters < 1) refuse("max_adapters is {}: at least 1", chosen.max_adapters);
  if (chosen.max_proposals < 0) refuse("max_proposals is {}: at least 0", chosen.max_proposals);
  if (chosen.steps_in_flight < 1) refuse("steps_in_flight is {}: at least 1", chosen.steps_in_flight);
  if (chosen.batch_share < 1) refuse("batch_share is {}: at least 1", chosen.batch_share);
  if (chosen.urgent_tokens < 1) refuse("urgent_tokens is {}: at least 1", chosen.urgent_tokens);
  return chosen;
}

/// Tokens of prompt and answer at most.
std::size_t limit_of(const sequence_request& request, std::int64_t context) {
  const auto prompt = static_cast<std::int64_t>(request.prompt.size());
  return static_cast<std::size_t>(prompt + std::min(request.max_tokens, context - prompt));
}

}  // namespace

batch_scheduler::batch_scheduler(options chosen)
    : options_(checked(std::move(chosen))),
      pool_(options_.blocks),
      cache_(pool_, options_.model),
      blocks_(cache_),
      adapters_(options_.max_adapters) {}

batch_scheduler::~batch_scheduler() = default;

result<accepted_request, refused_request> batch_scheduler::submit(sequence_request request) {
  if (const auto refused = check(request)) return *refused;
  sequence_state& leader = add(request, nullptr);
  leader.tokens = std::move(request.prompt);
  for (std::int32_t i = 1; i < request.answers; ++i) leader.followers.push_back(&add(request, &leader));
  return accepted_request{leader.id, request.answers};
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
  if (!request.was_accepted && queues_[0].size() + queues_[1].size() >= options_.max_waiting)
    return refused_request{refusal::queue_full, retry_after()};
  return std::nullopt;
}

/// Whether the sequence fits at its longest if it has the pool for itself. The last token of an answer is never fed.
bool batch_scheduler::could_ever_fit(const sequence_request& request) const {
  const std::size_t positions = std::max(limit_of(request, options_.context) - 1, request.prompt.size());
  return blocks_for(positions) <= static_cast<std::size_t>(pool_.total());
}

/// The time in which an eighth of the queue will have started, at the recent pace.
duration batch_scheduler::retry_after() const {
  const auto ahead = static_cast<std::int64_t>((queues_[0].size() + queues_[1].size()) / 8 + 1);
  return std::clamp<duration>(start_interval_ * ahead, std::chrono::milliseconds(100), std::chrono::seconds(30));
}

batch_scheduler::sequence_state& batch_scheduler::add(const sequence_request& request, sequence_state* leader) {
  auto made = std::make_unique<sequence_state>();
  sequence_state& sequence = *made;
  sequence.id = sequence_id{++last_id_};
  sequence.order = ++last_order_;
  sequence.priority = request.priority;
  sequence.adapter = request.adapter;
  sequence.limit = leader != nullptr ? leader->limit : limit_of(request, options_.context);
  sequence.prompt = leader != nullptr ? leader->prompt : request.prompt.size();
  sequence.every_prompt_row = request.every_prompt_row;
  if (leader == nullptr) note_lost(sequence, request.lost);
  sequences_.emplace(sequence.id, std::move(made));
  if (leader != nullptr) {
    sequence.leader = leader;
    sequence.phase = sequence_phase::following;
    queue_of(sequence).join(sequence, *leader);
  } else {
    queue_of(sequence).push(sequence, request.tenant, request.weight);
    sequence.use = &adapters_.wait(sequence.adapter, step_);
  }
  return sequence;
}

batch_scheduler::sequence_state* batch_scheduler::find(sequence_id id) const {
  const auto found = sequences_.find(id);
  return found == sequences_.end() ? nullptr : found->second.get();
}

bool batch_scheduler::cancel(sequence_id id) {
  sequence_state* sequence = find(id);
  if (sequence == nullptr || sequence->cancelled) return false;
  if (sequence->phase == sequence_phase::following) {
    cancel_follower(*sequence);
    return true;
  }
  sequence->cancelled = true;
  // The other answers still need the prompt; a step in flight still writes.
  if (sequence->followers.empty() && sequence->landed()) remove(*sequence);
  return true;
}

void batch_scheduler::cancel_follower(sequence_state& sequence) {
  sequence_state& leader = *sequence.leader;
  std::erase(leader.followers, &sequence);
  if (leader.phase == sequence_phase::running) --slots_;
  queue_of(sequence).leave(sequence);
  sequences_.erase(sequence_id(sequence.id));
  if (leader.cancelled && leader.followers.empty() && leader.landed()) remove(leader);
}

/// From waiting to running. Its blocks are there.
void batch_scheduler::start(sequence_state& sequence, instant now) {
  queue_of(sequence).remove(sequence);
  sequence.phase = sequence_phase::running;
  sequence.stalled = false;
  if (!sequence.first_start) sequence.first_start = now;
  if (sequence.urgent != 0) adapters_.set_claimed(*sequence.use, false, step_);
  adapters_.start(*sequence.use, step_);
  adapters_.stop_waiting(*sequence.use, step_);
  slots_ += sequence.slots();
  started_.push_back(&sequence);
  if (!sequence.charged) queue_of(sequence).charge(sequence, options_.prompt_cost * sequence.pending());
  sequence.charged = true;
  note_start(now);
}

void batch_scheduler::note_start(instant now) {
  if (last_start_) start_interval_ += ((now - *last_start_) - start_interval_) / 8;
  last_start_ = now;
}

/// From running to waiting. The caller takes it out of running_.
void batch_scheduler::preempt(sequence_state& sequence) {
  assert(sequence.landed() && (!sequence.cancelled || !sequence.followers.empty()));
  ++counts_.preemptions;
  adapters_.wait(sequence.adapter, step_);
  stop_running(sequence);
  sequence.proposals.clear();
  sequence.phase = sequence_phase::waiting;
  queue_of(sequence).push_preempted(sequence);
}

void batch_scheduler::stop_running(sequence_state& sequence) {
  blocks_.clear(sequence);
  slots_ -= sequence.slots();
  adapters_.stop_running(*sequence.use, step_);
}

void batch_scheduler::stop_being_urgent(sequence_state& sequence) {
  if (sequence.urgent == 0) return;
  std::erase(urgent_, &sequence);
  sequence.urgent = 0;
  if (sequence.phase == sequence_phase::waiting) adapters_.set_claimed(*sequence.use, false, step_);
}

/// Out of everything; it is gone afterwards.
void batch_scheduler::remove(sequence_state& sequence) {
  assert(sequence.landed() && sequence.followers.empty());
  stop_being_urgent(sequence);
  if (sequence.phase == sequence_phase::waiting) {
    queue_of(sequence).remove(sequence);
    adapters_.stop_waiting(*sequence.use, step_);
  } else {
    std::erase(running_, &sequence);
    stop_running(sequence);
  }
  note_lost(sequence, {});
  if (sequence.last_step.value != 0) forgotten_.push_back(sequence.id);
  queue_of(sequence).leave(sequence);
  sequences_.erase(sequence_id(sequence.id));
}

void batch_scheduler::forget_stored(life_end why) {
  for (flying_step& step : flying_)
    for (sequence_state* sequence : step.rows) {
      if (why == life_end::loss) note_lost_step(*sequence);
      sequence->in_flight = step_id{};
    }
  flying_.clear();
  for (const sequence_list all = running_; sequence_state * sequence : all) {
    if (sequence->cancelled && sequence->followers.empty())
      remove(*sequence);
    else
      preempt(*sequence);
  }
  running_.clear();
  cache_.clear();
}

void batch_scheduler::note_lost_step(sequence_state& sequence) {
  const lost_steps& before = sequence.lost;
  const bool is_further = sequence.computed > before.at;
  note_lost(sequence, {is_further ? 1 : before.lives + 1, std::max(sequence.computed, before.at)});
}

void batch_scheduler::note_lost(sequence_state& sequence, lost_steps lost) {
  suspects_ -= sequence.suspect();
  sequence.lost = lost;
  suspects_ += sequence.suspect();
}

lost_steps batch_scheduler::lost_with(sequence_id id) const {
  const sequence_state* sequence = find(id);
  if (sequence && sequence->leader) sequence = sequence->leader;
  return sequence ? sequence->lost : lost_steps{};
}

std::span<const token_id> batch_scheduler::text_of(sequence_id id) const {
  const sequence_state* sequence = find(id);
  return sequence ? std::span<const token_id>(sequence->tokens) : std::span<const token_id>();
}

std::optional<batch_scheduler::sequence_start> batch_scheduler::start_of(sequence_id id) const {
  const sequence_state* sequence = find(id);
  if (sequence && sequence->leader) sequence = sequence->leader;
  if (!sequence || !sequence->first_start) return std::nullopt;
  return sequence_start{*sequence->first_start, sequence->reused};
}

std::uint64_t batch_scheduler::served(tenant_id tenant, request_priority priority) const {
  return queues_[static_cast<std::size_t>(priority)].served(tenant);
}

batch_scheduler::statistics batch_scheduler::stats() const {
  statistics all = counts_;
  all.waiting = queues_[0].size() + queues_[1].size();
  all.running = running_.size();
  for (const flying_step& step : flying_) all.in_flight += step.rows.size();
  all.steps = step_;
  return all;
}

std::size_t batch_scheduler::queued_tokens() const {
  std::size_t tokens = 0;
  for (const auto& [id, sequence] : sequences_)
    if (sequence->phase != sequence_phase::following && !sequence->decoding()) tokens += sequence->pending();
  return tokens;
}

bool batch_scheduler::is_consistent() const {
  std::vector<std::int32_t> holders(static_cast<std::size_t>(pool_.total()), 0);
  std::size_t slots = 0, running = 0, waiting = 0, suspects = 0;
  for (const auto& [id, owned] : sequences_) {
    const sequence_state& sequence = *owned;
    suspects += sequence.suspect();
    running += sequence.phase == sequence_phase::running;
    waiting += sequence.phase == sequence_phase::waiting;
    if (sequence.phase == sequence_phase::running) slots += sequence.slots();
    if (sequence.phase != sequence_phase::running && !sequence.blocks.empty()) return false;
    for (const block_id block : sequence.blocks) ++holders[static_cast<std::size_t>(block.value)];
  }
  for (std::int32_t i = 0; i < pool_.total(); ++i)
    if (pool_.holders(block_id{i}) != holders[static_cast<std::size_t>(i)]) return false;
  const auto held = std::count_if(holders.begin(), holders.end(), [](std::int32_t count) { return count > 0; });
  return suspects == suspects_ && slots == slots_ && slots <= static_cast<std::size_t>(options_.max_sequences) &&
         running == running_.size() && waiting == queues_[0].size() + queues_[1].size() && held == pool_.held() &&
         cache_.is_consistent();
}

}  // namespace troupe
