#include "actors/requests/gateway.hpp"

#include <algorithm>
#include <string>
#include <unordered_map>
#include <vector>

#include "actors/requests/waiting_requests.hpp"
#include "base/error.hpp"
#include "base/to_size.hpp"
#include "model/engine/sampling/certain_text.hpp"
#include "model/text/model_text.hpp"

namespace troupe {
namespace {

bool contains(const std::vector<token_id>& tokens, token_id token) {
  return std::find(tokens.begin(), tokens.end(), token) != tokens.end();
}

/// The model's end tokens are not the request's, even if it names them, unless it wants to know nothing of these.
std::vector<token_id> own_stop_tokens(const engine_request& request) {
  std::vector<token_id> own = request.sampling.stop_tokens;
  if (!request.sampling.ignore_eos)
    std::erase_if(own, [&](token_id token) { return contains(request.end_tokens, token); });
  return own;
}

/// The sink of all requests: turns tokens into text, ends answers at stop strings, tells listeners. Knows no
/// protocol.
class gateway_state {
 public:
  using handle = gateway_actor;
  static constexpr const char* name = "gateway";

  gateway_state(handle::pointer self, gateway_parts parts);
  handle::behavior_type make_behavior();

 private:
  struct text_state {
    certain_text text;
    std::uint64_t tokens = 0;
    bool begun = false, ended = false;
  };
  struct running {
    std::shared_ptr<answer_listener> listener;
    std::int64_t prompt_tokens = 0;
    std::string adapter;
    std::shared_ptr<const void> hold;  ///< keeps the files of the adapter's version
    std::uint64_t skip_tokens = 0, min_tokens = 0;
    std::vector<token_id> stop_tokens;  ///< those that are no end tokens of the model
    bool keep_stop = false;             ///< what the request itself stops at is part of the text
    std::vector<text_state> answers;
    std::size_t left = 0;  ///< answers that have not ended
  };

  std::optional<adapter_version> version_for(const begin_request& request) const;
  void begin(begin_request& request);
  void start(begin_request& request, adapter_version version, instant accepted);
  void wait_for_adapter(begin_request& request);
  void take_found(const adapter_found& found);
  void end_overdue();
  void end(request_id id);
  void take_tokens(answer_tokens& brought);
  answer_part read_tokens(const running& request, text_state& answer, answer_tokens& brought);
  static void end_part(answer_part& part, const running& request, text_state& answer, answer_tokens& brought);
  void take_refusal(const request_refused& refused);
  void refuse(const begin_request& request, request_refused why);
  void stop();
  void report_soon();
  void report();

  handle::pointer self_;
  gateway_parts parts_;
  actor_clock clock_{self_};

  std::unordered_map<request_id, running> running_;
  waiting_requests waiting_;  ///< for adapters
  std::uint64_t requests_ = 0, prompt_tokens_ = 0, answer_tokens_ = 0, refused_ = 0, cancelled_ = 0;
  bool report_due_ = false;
};

}  // namespace

gateway_state::gateway_state(handle::pointer self, gateway_parts parts) : self_(self), parts_(std::move(parts)) {
  report();
}

gateway_state::handle::behavior_type gateway_state::make_behavior() {
  return {
      [this](token_batch& batch) {
        for (answer_tokens& each : batch.answers) take_tokens(each);
        report_soon();
      },
      [this](const request_refused& refused) {
        take_refusal(refused);
        report_soon();
      },
      [this](begin_request& request) {
        ++requests_;
        begin(request);
        report_soon();
      },
      [this](const end_request& ended) {
        end(ended.id);
        report_soon();
      },
      [this](const adapter_found& found) {
        take_found(found);
        report_soon();
      },
      [this](wake) {
        end_overdue();
        report();
      },
      [this](stop_now) { stop(); },
  };
}

// --- beginning ---

/// The first prompt of a request for which it is asked decides for all of them.
std::optional<adapter_version> gateway_state::version_for(const begin_request& request) const {
  if (request.version && *request.version) return *request.version;
  const auto version = parts_.adapters->resolve(request.adapter);
  if (request.version) *request.version = version;
  return version;
}

void gateway_state::begin(begin_request& request) {
  if (const auto version = version_for(request)) return start(request, *version, clock_.now());
  if (is_adapter_name(request.adapter)) return wait_for_adapter(request);
  refuse(request, {.error = fmt::format("adapter {}: there is none: see `troupe adapters list`", request.adapter),
                   .cause = refusal_cause::bad_input,
                   .is_unknown_adapter = true});
}

void gateway_state::start(begin_request& request, adapter_version version, instant accepted) {
  sequence_request& sequence = request.engine.sequence;
  sequence.adapter = version;
  running started;
  started.listener = request.listener;
  started.prompt_tokens = static_cast<std::int64_t>(sequence.prompt.size());
  started.skip_tokens = request.skip_tokens;
  started.min_tokens = static_cast<std::uint64_t>(request.engine.sampling.min_tokens);
  started.stop_tokens = own_stop_tokens(request.engine);
  started.keep_stop = request.keep_stop;
  if (const auto details = parts_.adapters->find(version)) started.adapter = details->full_name;
  if (version != no_adapter) started.hold = parts_.adapters->hold(version);
  const tokenizer& tokens = parts_.prompts->tokens();
  const bool has_form{request.engine.sampling.constraint};
  const bool begins = begins_text(tokens, sequence.prompt, has_form);
  const certain_text nothing_yet(stream_decoder(tokens, request.skip_special, begins),
                                 stop_matcher(request.engine.sampling.stop, request.keep_stop));
  for (std::int32_t i = 0; i < sequence.answers; ++i) started.answers.push_back({nothing_yet});
  started.left = started.answers.size();
  prompt_tokens_ += sequence.prompt.size();
  running_.insert_or_assign(request.id, std::move(started));
  tell(parts_.router, routed_request{.id = request.id,
                                     .engine = std::move(request.engine),
                                     .sink = sink_actor(handle(self_)),
                                     .accepted = accepted});
}

/// Asks the adapter store, which may find a folder of that name.
void gateway_state::wait_for_adapter(begin_request& request) {
  if (waiting_.size() >= parts_.max_waiting)
    return refuse(request, {.error = "too many requests wait for adapters: try again later",
                            .cause = refusal_cause::full,
                            .retry_after = std::chrono::seconds(1)});
  const instant now = clock_.now();
  const std::string adapter = request.adapter;
  const bool is_first = waiting_.add(std::move(request), now, now + parts_.longest_wait);
  if (is_first) tell(parts_.store, find_adapter{adapter, handle(self_)});
  tell_after(self_, parts_.longest_wait, wake{});
}

/// Where something else is wrong than that there is no room, nobody knows when to come back: a batch job's line that
/// hears this must hold no other job up.
void gateway_state::take_found(const adapter_found& found) {
  for (waiting_requests::waiting& each : waiting_.take(found.name)) {
    if (const auto version = version_for(each.request))
      start(each.request, *version, each.since);
    else if (found.may_pass)
      refuse(each.request, {.error = found.error});
    else
      refuse(each.request,
             {.error = found.error, .cause = refusal_cause::bad_input, .is_unknown_adapter = found.is_unknown});
  }
}

void gateway_state::end_overdue() {
  for (const begin_request& each : waiting_.take_overdue(clock_.now()))
    refuse(each, {.error = fmt::format("adapter {}: was not ready in time: try again", each.adapter)});
}

void gateway_state::refuse(const begin_request& request, request_refused why) {
  ++refused_;
  why.request = request.id;
  request.listener->on_refused(why);
}

/// The listener is not told, since it asked for this. The request may be over already.
void gateway_state::end(request_id id) {
  if (running_.erase(id) > 0) {
    ++cancelled_;
    return tell(parts_.router, cancel_request{id});
  }
  cancelled_ += waiting_.remove(id);
}

// --- answers ---

void gateway_state::take_tokens(answer_tokens& brought) {
  const auto found = running_.find(brought.request);
  if (found == running_.end()) return;
  running& request = found->second;
  if (brought.index < 0 || to_size(brought.index) >= request.answers.size()) return;
  text_state& answer = request.answers[to_size(brought.index)];
  if (answer.ended) return;
  answer_part part = read_tokens(request, answer, brought);
  const bool stopped = answer.text.stopped() && !brought.end;
  const bool says = part.end || !part.tokens.empty() || !part.text.empty() || !part.scored.empty();
  if (says && !std::exchange(answer.begun, true)) part.adapter = request.adapter;
  const std::shared_ptr<answer_listener> listener = request.listener;
  if (part.end) {
    answer.ended = true;
    if (stopped) tell(parts_.router, cancel_request{found->first, brought.index});
    if (--request.left == 0) running_.erase(found);
  }
  if (says) listener->on_part(std::move(part));
}

answer_part gateway_state::read_tokens(const running& request, text_state& answer, answer_tokens& brought) {
  answer_part part;
  part.index = brought.index;
  part.timing = brought.timing;
  part.scored = std::move(brought.scored);
  for (std::size_t i = 0; i < brought.tokens.size() && !answer.text.stopped(); ++i) {
    ++answer_tokens_;
    ++answer.tokens;
    const std::string text = answer.text.push(brought.tokens[i], answer.tokens > request.min_tokens);
    if (answer.tokens <= request.skip_tokens) continue;
    part.text += text;
    part.tokens.push_back(brought.tokens[i]);
    if (i < brought.details.size()) part.details.push_back(std::move(brought.details[i]));
  }
  end_part(part, request, answer, brought);
  return part;
}

/// Where a text of `stop` or what was brought ends the answer.
void gateway_state::end_part(answer_part& part, const running& request, text_state& answer, answer_tokens& brought) {
  if (answer.text.stopped()) {
    part.end = answer_end{"stop", request.prompt_tokens, request.adapter};
    part.end->stopped_by.text = *answer.text.matched();
  } else if (brought.end) {
    const bool by_stop_token = brought.ending && contains(request.stop_tokens, brought.ending->token);
    const bool keeps_token = by_stop_token && request.keep_stop;
    part.text += answer.text.finish(keeps_token ? std::optional(brought.ending->token) : std::nullopt);
    part.end = answer_end{std::string(name_of(*brought.end)), request.prompt_tokens, request.adapter,
                          std::move(brought.ending)};
    if (by_stop_token) part.end->stopped_by.token = part.end->token->token;
    part.hidden = std::move(brought.hidden);
  }
}

void gateway_state::take_refusal(const request_refused& refused) {
  const auto gone = running_.extract(refused.request);
  if (!gone) return;
  ++refused_;
  if (gone.mapped().answers.size() > 1)
    tell(parts_.router, cancel_request{refused.request});  // other answers of it may still be computed
  gone.mapped().listener->on_refused(refused);
}

// --- the rest ---

void gateway_state::stop() {
  request_refused why{.error = "the cluster is being stopped", .retry_after = std::chrono::seconds(1)};
  for (auto& [id, request] : running_) {
    why.request = id;
    request.listener->on_refused(why);
  }
  for (const begin_request& each : waiting_.take_all()) refuse(each, why);
  running_.clear();
  self_->quit();
}

void gateway_state::report_soon() {
  if (std::exchange(report_due_, true)) return;
  tell_after(self_, parts_.report_interval, wake{});
}

void gateway_state::report() {
  report_due_ = false;
  parts_.board->post(
      "gateway",
      fmt::format(R"({{"running":{},"waiting_for_adapters":{},"requests":{},"refused":{},"cancelled":{},)"
                  R"("prompt_tokens":{},"answer_tokens":{}}})",
                  running_.size(), waiting_.size(), requests_, refused_, cancelled_, prompt_tokens_, answer_tokens_));
}

gateway_actor spawn_gateway(caf::actor_system& system, gateway_parts parts) {
  return spawn_state<gateway_state>(system, std::move(parts));
}

}  // namespace troupe
