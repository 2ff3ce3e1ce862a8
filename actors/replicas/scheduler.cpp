#include "actors/replicas/scheduler.hpp"

#include <algorithm>

#include "base/error.hpp"

namespace troupe {
namespace {

constexpr duration report_interval = std::chrono::milliseconds(100);

std::string text_of(const refused_request& refused) {
  return std::string(name_of(refused.reason));
}

constexpr std::size_t most_names = 64;  ///< of a list on the board

/// ,"key":["pricing@2",…]: names have no character that JSON would want escaped.
void append_names(std::string& to, std::string_view key, std::vector<adapter_version> versions,
                  const adapter_directory& directory) {
  std::sort(versions.begin(), versions.end());
  if (versions.size() > most_names) versions.resize(most_names);
  const auto known = directory.read();
  std::string names;
  for (const adapter_version version : versions) {
    const auto details = known->versions.find(version);
    if (details == known->versions.end()) continue;
    names += fmt::format("{}\"{}\"", names.empty() ? "" : ",", details->second.full_name);
  }
  to += fmt::format(",\"{}\":[{}]", key, names);
}

refusal_cause cause_of(refusal reason) {
  return reason == refusal::queue_full ? refusal_cause::full : refusal_cause::bad_input;
}

}  // namespace

scheduler_state::scheduler_state(handle::pointer self, scheduler_options options, router_actor router,
                                 supervisor_actor supervisor, std::shared_ptr<const adapter_directory> adapters,
                                 std::shared_ptr<status_board> board)
    : self_(self),
      options_(std::move(options)),
      router_(std::move(router)),
      supervisor_(std::move(supervisor)),
      adapters_(std::move(adapters)),
      board_(std::move(board)) {
  post_status();
}

scheduler_state::handle::behavior_type scheduler_state::make_behavior() {
  return {
      [this](routed_request& request) {
        accept(request);
        pump();
      },
      [this](const cancel_request& cancelled) {
        cancel(cancelled);
        report_soon();
        pump();
      },
      [this](const replica_started& started) {
        begin_life(started);
        pump();
      },
      [this](const replica_stopped& stopped) { end_life(stopped.give_up_requests); },
      [this](const step_done& done) {
        if (!running_ || done.life != life_) return;
        if (!is_expected(done.outcome))
          return tell(supervisor_, life_rejected{{}, life_, "the last stage says what its step cannot have brought"});
        finish_step(done);
        pump();
      },
      [this](const adapter_loaded& answer) {
        if (!running_ || answer.life != life_) return;
        take_adapter(answer);
        pump();
      },
      [this](wake) {
        report();
        pump();
      },
  };
}

// --- requests ---

void scheduler_state::accept(routed_request& request) {
  ++received_;
  report_soon();
  if (!requests_) return tell(router_, requests_returned{{}, options_.replica, {std::move(request)}});
  if (!declare_adapter(request.what.what.adapter))
    return refuse_request(request, "the adapter is unknown, or larger than adapters.memory", refusal_cause::bad_input,
                          {});
  try {
    const auto accepted = requests_->submit(request.what);
    if (!accepted) {
      const refused_request& refused = accepted.error();
      return refuse_request(request, text_of(refused), cause_of(refused.reason), refused.retry_after);
    }
    for (std::int32_t i = 0; i < accepted->answers; ++i) {
      const sequence_id id(accepted->first.value + static_cast<std::uint64_t>(i));
      parts_[id] = {request.id,   request.first_index + i, request.sink, request.what.what.adapter,
                    clock_.now(), request.what.resumed > 0};
      sequences_[request.id].push_back(id);
    }
  } catch (const input_error& error) {
    refuse_request(request, error.what(), refusal_cause::bad_input, {});
  }
}

void scheduler_state::refuse_request(const routed_request& request, std::string error, refusal_cause cause,
                                     duration retry_after) {
  tell(request.sink, request_refused{{}, request.id, std::move(error), cause, retry_after});
  if (!sequences_.contains(request.id)) ended_.push_back(request.id);  // else other answers to it are here
}

void scheduler_state::cancel(const cancel_request& cancelled) {
  const auto found = sequences_.find(cancelled.id);
  if (found == sequences_.end()) return;
  for (const std::vector<sequence_id> all = found->second; const sequence_id id : all) {
    if (cancelled.answer && parts_.at(id).index != *cancelled.answer) continue;
    requests_->cancel(id);
    forget(id);
  }
}

/// False where it is not known, or can never be loaded.
bool scheduler_state::declare_adapter(adapter_version version) {
  if (version == no_adapter) return true;
  if (residency_->is_declared(version) && !residency_->failure_of(version)) return true;
  const auto details = adapters_->find(version);
  return details && !residency_->declare(version, details->bytes);
}

void scheduler_state::forget(sequence_id id) {
  const auto found = parts_.find(id);
  if (found == parts_.end()) return;
  const part gone = found->second;
  parts_.erase(found);
  auto& others = sequences_[gone.request];
  std::erase(others, id);
  if (!others.empty()) return;
  sequences_.erase(gone.request);
  ended_.push_back(gone.request);
}

void scheduler_state::refuse_all_with(adapter_version version, const std::string& error) {
  std::unordered_map<request_id, sink_actor> refused;
  for (const auto& [id, of] : parts_)
    if (of.adapter == version) refused.emplace(of.request, of.sink);
  for (const auto& [request, sink] : refused) {
    cancel({{}, request});
    tell(sink, request_refused{{}, request, error, refusal_cause::unavailable, {}});
  }
}

// --- lives ---

batch_scheduler::options scheduler_state::options_for_life() const {
  batch_scheduler::options options = options_.batches;
  options.blocks = static_cast<std::int32_t>(blocks_);
  options.steps_in_flight = static_cast<std::int32_t>(steps_in_flight_);
  options.is_ready = [this](adapter_version version) { return residency_->is_ready(version); };
  return options;
}

/// All stages start from nothing. Requests that waited here go on; where the storage has another size now, they begin
/// as new ones with the text they have.
void scheduler_state::begin_life(const replica_started& started) {
  life_ = started.life;
  const bool same_shape =
      requests_ && blocks_ == started.blocks && steps_in_flight_ == static_cast<std::size_t>(started.steps_in_flight);
  stages_ = started.stages;
  steps_in_flight_ = static_cast<std::size_t>(started.steps_in_flight);
  blocks_ = started.blocks;
  workers_ = 0;
  for (const auto& ranks : stages_) workers_ += ranks.size();
  running_ = true;
  ++lives_;
  in_flight_.clear();
  loading_.clear();
  residency_ = std::make_unique<adapter_residency>(
      adapter_residency::options{options_.adapter_bytes, options_.batches.adapter_patience});
  if (same_shape) {
    for (const auto& [id, of] : parts_) (void)declare_adapter(of.adapter);
    return report();
  }
  auto before = std::exchange(requests_, std::make_unique<replica_scheduler>(options_for_life(), options_.vocab_size));
  auto parts = std::exchange(parts_, {});
  sequences_.clear();
  if (before)
    for (auto& [id, what] : before->give_up_all()) {
      const part& of = parts.at(id);
      routed_request again{{}, of.request, of.index, std::move(what), of.sink};
      accept(again);
    }
  report();
}

void scheduler_state::end_life(bool give_up_requests) {
  running_ = false;
  in_flight_.clear();
  note_flights(0);
  for (auto& ranks : stages_) ranks.clear();  // a worker of this process ends once nobody knows it
  if (!requests_) return report();
  resumed_ += requests_->decisions().stats().running;
  requests_->forget_stored();
  if (give_up_requests) return_requests();
  report();
}

void scheduler_state::return_requests() {
  requests_returned returned{{}, options_.replica, {}};
  for (auto& [id, what] : requests_->give_up_all()) {
    const part& of = parts_.at(id);
    returned.requests.push_back({{}, of.request, of.index, std::move(what), of.sink});
  }
  parts_.clear();
  sequences_.clear();
  requests_.reset();  // what comes before the next life goes elsewhere too
  tell(router_, std::move(returned));
}

// --- steps ---

void scheduler_state::pump() {
  if (running_) {
    move_adapters();
    while (in_flight_.size() < steps_in_flight_ && requests_->plan_step(clock_.now(), order_)) send_order();
  }
  if (!ended_.empty()) tell(router_, requests_ended{{}, options_.replica, std::exchange(ended_, {})});
}

void scheduler_state::send_order() {
  flight& sent = in_flight_.emplace_back();
  sent.step = order_.plan.id;
  for (const planned_row& row : order_.plan.rows)
    if (row.complete)
      for (const sequence_id id : order_.plan.answers_of(row))
        sent.answers.push_back({id, std::min(row.logit_rows, 1), row.proposals + 1});
  tell_stages(run_step{life_, order_});
  note_flights(in_flight_.size());
}

/// From now on so many steps are in flight, of so many that could be.
void scheduler_state::note_flights(std::size_t now) {
  const instant at = clock_.now();
  if (flights_ > 0) {
    const duration passed = at - flights_since_;
    active_ += passed;
    bubble_ += passed * static_cast<std::int64_t>(steps_in_flight_ - std::min(flights_, steps_in_flight_)) /
               static_cast<std::int64_t>(steps_in_flight_);
  }
  flights_ = now;
  flights_since_ = at;
}

template <message M>
void scheduler_state::tell_stages(const M& what) {
  for (const auto& ranks : stages_)
    for (const worker_actor& worker : ranks) tell(worker, what);
}

/// It comes from another process: only what was ordered is believed, once, and nothing beyond its lists is read.
bool scheduler_state::is_expected(const step_outcome& outcome) const {
  if (in_flight_.empty() || in_flight_.front().step != outcome.step) return false;
  const auto lies_in = [](std::int32_t first, std::int32_t count, std::size_t size) {
    return first >= 0 && count >= 0 && std::int64_t{first} + count <= static_cast<std::int64_t>(size);
  };
  const auto is_right = [&](const chosen_answer& answer, const awaited_answer& awaited) {
    return answer.sequence == awaited.sequence && answer.tokens <= awaited.most &&
           (answer.tokens >= awaited.least || answer.finished) &&
           lies_in(answer.first_token, answer.tokens, outcome.tokens.size()) &&
           lies_in(answer.first_proposal, answer.proposals, outcome.proposals.size());
  };
  const auto is_token = [this](token_id token) { return token >= 0 && token < options_.vocab_size; };
  const auto& awaited = in_flight_.front().answers;
  return (outcome.details.empty() || outcome.details.size() == outcome.tokens.size()) &&
         std::all_of(outcome.tokens.begin(), outcome.tokens.end(), is_token) &&
         std::all_of(outcome.proposals.begin(), outcome.proposals.end(), is_token) &&
         std::all_of(outcome.scored.begin(), outcome.scored.end(),
                     [&](const sampled_token& each) { return is_token(each.token); }) &&
         std::equal(outcome.answers.begin(), outcome.answers.end(), awaited.begin(), awaited.end(), is_right);
}

void scheduler_state::finish_step(const step_done& done) {
  in_flight_.pop_front();
  note_flights(in_flight_.size());
  requests_->commit(
      done.outcome, [this](const engine_token& token) { note_token(token); },
      [this](const ended_sequence& ended) { note_end(ended); },
      [this](const engine_reading& reading) { note_reading(reading); });
  tell_sinks();
  report_soon();
}

/// One step's words to a sink lie together; of one answer they come one after the other.
answer_tokens& scheduler_state::entry_of(const part& of) {
  auto batch = std::find_if(batches_.begin(), batches_.end(), [&](const sink_batch& b) { return b.sink == of.sink; });
  if (batch == batches_.end()) batch = batches_.insert(batches_.end(), {of.sink, {}});
  auto& answers = batch->tokens.answers;
  const auto is_its = [&](const answer_tokens& a) { return a.request == of.request && a.index == of.index; };
  const auto found = std::find_if(answers.rbegin(), answers.rend(), is_its);
  return found != answers.rend() ? *found : answers.emplace_back(answer_tokens{of.request, of.index, {}, {}, {}, {}});
}

void scheduler_state::note_token(const engine_token& token) {
  const auto of = parts_.find(token.sequence);
  if (of == parts_.end()) return;
  answer_tokens& entry = entry_of(of->second);
  entry.tokens.push_back(token.token);
  if (token.details) entry.details.push_back(*token.details);
  if (!of->second.timed) note_timing(token.sequence, of->second, entry);
  ++tokens_;
}

void scheduler_state::note_reading(const engine_reading& reading) {
  const auto of = parts_.find(reading.sequence);
  if (of == parts_.end()) return;
  answer_tokens& entry = entry_of(of->second);
  entry.hidden.assign(reading.hidden.begin(), reading.hidden.end());
  entry.scored.assign(reading.scored.begin(), reading.scored.end());
}

void scheduler_state::note_timing(sequence_id id, part& of, answer_tokens& entry) const {
  of.timed = true;
  if (const auto started = requests_->decisions().start_of(id))
    entry.timing = answer_timing{started->at - of.accepted, clock_.now() - started->at,
                                 static_cast<std::int64_t>(started->reused)};
}

void scheduler_state::note_end(const ended_sequence& ended) {
  const auto of = parts_.find(ended.sequence);
  if (of == parts_.end()) return;
  entry_of(of->second).end = ended.reason;
  forget(ended.sequence);
}

void scheduler_state::tell_sinks() {
  for (sink_batch& batch : batches_) tell(batch.sink, std::move(batch.tokens));
  batches_.clear();
}

// --- adapters ---

void scheduler_state::move_adapters() {
  const auto is_pinned = [this](adapter_version version) { return requests_->decisions().is_running(version); };
  const adapter_residency::moves& moves = residency_->turn(is_pinned);
  for (const adapter_version version : moves.drop) tell_stages(drop_adapter{life_, version});
  for (const adapter_version version : moves.load) {
    const auto details = adapters_->find(version);
    if (!details) {
      residency_->failed(version, "it was unloaded");
      refuse_all_with(version, "the adapter was unloaded");
      continue;
    }
    loading_[version] = {workers_, {}};
    tell_stages(load_adapter{life_, version, details->full_name, details->sha256, details->files});
  }
}

/// It is not tried again before all have answered: else a late word of one try would count for the next.
void scheduler_state::take_adapter(const adapter_loaded& answer) {
  const auto found = loading_.find(answer.version);
  if (found == loading_.end()) return;
  std::string& error = found->second.error;
  if (!answer.error.empty()) {
    error = answer.error;
    refuse_all_with(answer.version, error);
  }
  if (--found->second.missing > 0) return;
  if (error.empty()) {
    residency_->loaded(answer.version);
  } else {
    residency_->failed(answer.version, error);
    tell_stages(drop_adapter{life_, answer.version});
    (void)declare_adapter(answer.version);  // again, for who came after the refusal
  }
  loading_.erase(found);
}

// --- word to others ---

void scheduler_state::report_soon() {
  if (std::exchange(report_due_, true)) return;
  tell_after(self_, report_interval, wake{});
}

void scheduler_state::report() {
  report_due_ = false;
  const instant now = clock_.now();
  const double seconds = std::chrono::duration<double>(now - reported_).count();
  if (seconds > 0) tokens_per_second_ = static_cast<double>(tokens_ - tokens_reported_) / seconds;
  const bool busy = tokens_ != std::exchange(tokens_reported_, tokens_);
  reported_ = now;
  tell(router_, replica_state{{}, options_.replica, running_, load()});
  post_status();
  // Once more after the last token (a replica at rest), and while somebody waits for an adapter, so that its clock goes
  // on.
  if (busy || (requests_ && requests_->decisions().stats().waiting > 0)) report_soon();
}

replica_load scheduler_state::load() const {
  replica_load load;
  load.received = received_;
  if (!requests_) return load;
  const auto stats = requests_->decisions().stats();
  load.running = static_cast<std::uint32_t>(stats.running);
  load.waiting = static_cast<std::uint32_t>(stats.waiting);
  load.max_sequences = static_cast<std::uint32_t>(options_.batches.max_sequences);
  load.max_waiting = static_cast<std::uint32_t>(options_.batches.max_waiting);
  load.blocks = static_cast<std::uint32_t>(blocks_);
  load.free_blocks = static_cast<std::uint32_t>(requests_->decisions().cache().available());
  load.queued_tokens = requests_->decisions().queued_tokens();
  load.tokens_per_second = tokens_per_second_;
  for (const auto& [version, details] : adapters_->read()->versions)
    if (residency_->is_declared(version) && residency_->is_resident(version)) load.adapters.push_back(version);
  return load;
}

void scheduler_state::post_status() const {
  board_->post(fmt::format("replica.{:04}", options_.replica.value), status_json());
}

std::string scheduler_state::status_json() const {
  const replica_load now = load();
  const auto stats = requests_ ? requests_->decisions().stats() : batch_scheduler::statistics{};
  std::vector<adapter_version> running, waiting;
  if (requests_)
    requests_->decisions().adapters().visit([&](const detail::adapter_use& use) {
      if (use.running > 0) running.push_back(use.adapter);
      if (use.waiting > 0) waiting.push_back(use.adapter);
    });
  const auto seconds = [](duration d) { return std::chrono::duration<double>(d).count(); };
  std::string text =
      fmt::format(R"({{"ready":{},"running":{},"waiting":{},"max_sequences":{},"blocks":{},"free_blocks":{},)"
                  R"("tokens_per_second":{:.1f},"tokens":{},"steps":{},"preemptions":{},"computed_tokens":{},)"
                  R"("reused_tokens":{},"resident_adapters":{},"max_adapters":{},"epoch":{},"lives":{},"resumed":{},)"
                  R"("active_seconds":{:.3f},"bubble_seconds":{:.3f})",
                  running_, now.running, now.waiting, options_.batches.max_sequences, now.blocks, now.free_blocks,
                  now.tokens_per_second, tokens_, stats.steps, stats.preemptions, stats.computed_tokens,
                  stats.reused_tokens, now.adapters.size(), options_.batches.max_adapters, life_.epoch.value, lives_,
                  resumed_, seconds(active_), seconds(bubble_));
  append_names(text, "resident", now.adapters, *adapters_);
  append_names(text, "running_adapters", running, *adapters_);
  append_names(text, "waiting_adapters", waiting, *adapters_);
  return text + "}";
}

scheduler_actor spawn_scheduler(caf::actor_system& system, const scheduler_options& options, const router_actor& router,
                                const supervisor_actor& supervisor,
                                const std::shared_ptr<const adapter_directory>& adapters,
                                const std::shared_ptr<status_board>& board) {
  return spawn_state<scheduler_state>(system, options, router, supervisor, adapters, board);
}

}  // namespace troupe
