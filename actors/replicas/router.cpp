#include "actors/replicas/router.hpp"

#include <algorithm>
#include <array>
#include <deque>
#include <optional>
#include <unordered_map>
#include <vector>

#include "base/to_size.hpp"

namespace troupe {
namespace {

constexpr duration retry_interval = std::chrono::milliseconds(250);

const request_refused no_adapter_anywhere{.error = "no replica can load the adapter: their nodes' logs say why"};
const request_refused no_room_with_adapter{
    .error =
        "the replicas that can load the adapter are full, and the others' nodes' logs say why they cannot: "
        "try again later",
    .cause = refusal_cause::full,
    .retry_after = retry_interval * 4};

/// Whether a returned request is cancelled. Answers that had begun are returned as requests of one answer each.
bool is_about(const cancel_request& cancelled, const routed_request& request) {
  if (cancelled.id != request.id) return false;
  return !cancelled.answer || (request.engine.sequence.answers == 1 && request.first_index == *cancelled.answer);
}

/// routing_policy decides; this class carries it out. A request that finds no replica ready waits here for a while
/// before it is refused. One that was accepted already waits longer, also for an adapter that no replica can load.
class router_state {
 public:
  using handle = router_actor;
  static constexpr const char* name = "router";

  router_state(handle::pointer self, router_parts parts);
  handle::behavior_type make_behavior();

 private:
  struct parked {
    routed_request request;
    instant until;
  };
  struct request_routes {
    std::unordered_map<replica_id, std::int32_t> answers;  ///< how many of them each replica computes
    std::vector<cancel_request> cancelled;                 ///< it or some answers: a lost replica may be returning them
  };
  void route_new(routed_request& request);
  bool has_parked(request_priority least) const;
  bool has_held(const sequence_request& like) const;
  bool route(routed_request& request, std::optional<replica_id> from = {});
  void park(routed_request& request);
  void refuse_request(const routed_request& request);
  void route_parked();
  void route_held(request_priority priority);
  bool step_aside(parked& waiting);
  void move_waiting(replica_id from);
  void refuse_overdue();
  void refuse(const routed_request& request, request_refused why);
  void wake_soon();
  void cancel(const cancel_request& cancelled);
  void note_ended(const requests_ended& ended);
  void take_back(requests_returned& returned);
  void route_elsewhere(routed_request& request, const std::string& fault);
  void hold(routed_request& request, const request_refused& otherwise);
  bool is_cancelled(const routed_request& request) const;
  bool forget_answers(request_id request, replica_id replica, std::int32_t count);

  handle::pointer self_;
  router_parts parts_;
  actor_clock clock_{self_};
  routing_policy policy_;
  std::unordered_map<replica_id, scheduler_actor> replicas_;
  std::unordered_map<request_id, request_routes> routes_;
  std::array<std::deque<parked>, priorities> parked_;  ///< by priority: batches find no room where others still do
  /// Requests that were accepted and whose adapter some replica that was ready could not load. Until all can load it,
  /// they hold up only those with the same one.
  std::vector<routed_request> held_;
  bool wake_due_ = false;
};

}  // namespace

router_state::router_state(handle::pointer self, router_parts parts) : self_(self), parts_(std::move(parts)) {}

router_state::handle::behavior_type router_state::make_behavior() {
  return {
      [this](routed_request& request) { route_new(request); },
      [this](const cancel_request& cancelled) { cancel(cancelled); },
      [this](const replica_added& added) {
        replicas_[added.replica] = added.scheduler;
        policy_.add_replica(added.replica);
      },
      [this](const replica_state& state) {
        if (!replicas_.contains(state.replica)) return;
        policy_.update(state.replica, state.load);
        policy_.set_ready(state.replica, state.ready);
        route_parked();
        move_waiting(state.replica);
      },
      [this](const requests_ended& ended) { note_ended(ended); },
      [this](requests_returned& returned) { take_back(returned); },
      [this](wake) {
        wake_due_ = false;
        refuse_overdue();
        route_parked();
      },
  };
}

/// Nobody overtakes those who wait; but batches, which leave room in every queue to others, do not hold these up.
void router_state::route_new(routed_request& request) {
  const sequence_request& sequence = request.engine.sequence;
  if (has_parked(sequence.priority) || has_held(sequence) || !route(request)) park(request);
}

/// Whether requests of this priority wait, or of a higher one.
bool router_state::has_parked(request_priority least) const {
  return !parked_.front().empty() || (least == request_priority::batch && !parked_.back().empty());
}

/// Whether one of those waits for the room that this one would take.
bool router_state::has_held(const sequence_request& like) const {
  const auto is_before = [&](const routed_request& waiting) {
    const sequence_request& other = waiting.engine.sequence;
    const bool same_room = other.adapter == like.adapter || policy_.is_loadable_everywhere(other.adapter);
    return same_room && other.priority <= like.priority;
  };
  return policy_.is_loadable(like.adapter) && std::any_of(held_.begin(), held_.end(), is_before);
}

/// Returns false if no replica can take it now. `from`: where it waited in vain, if anywhere.
bool router_state::route(routed_request& request, std::optional<replica_id> from) {
  const auto& sequence = request.engine.sequence;
  const auto prefix = prefix_hashes(sequence.prompt, sequence.adapter, sequence.cache_salt);
  const request_view view{prefix, sequence.prompt.size(), sequence.adapter,
                          sequence.priority == request_priority::batch};
  const auto chosen = from ? policy_.choose_after(*from, view) : policy_.choose(view);
  if (!chosen) return false;
  policy_.sent(*chosen, view);
  routes_[request.id].answers[*chosen] += sequence.answers;
  tell(replicas_.at(*chosen), std::move(request));
  return true;
}

/// Lets a request wait if that can help: a replica is coming back, or the request was accepted already. Nobody waits
/// behind one that finds no room only because of its adapter.
void router_state::park(routed_request& request) {
  const bool was_accepted = request.engine.sequence.was_accepted;
  if (was_accepted && !policy_.is_loadable_everywhere(request.engine.sequence.adapter))
    return hold(request, no_room_with_adapter);
  auto& line = parked_[to_size(request.engine.sequence.priority)];
  const bool hopeless = policy_.ready() > 0 || replicas_.empty() || line.size() >= parts_.most_parked;
  if (!was_accepted && hopeless) return refuse_request(request);
  line.push_back({std::move(request), clock_.now() + (was_accepted ? parts_.longest_pause : parts_.patience)});
  wake_soon();
}

void router_state::refuse_request(const routed_request& request) {
  const bool full = policy_.ready() > 0;
  const char* why =
      full ? "every replica's queue is full: try again later" : "no replica can serve at the moment: try again later";
  refuse(request, {.error = why,
                   .cause = full ? refusal_cause::full : refusal_cause::unavailable,
                   .retry_after = retry_interval * 4});
}

void router_state::refuse(const routed_request& request, request_refused why) {
  why.request = request.id;
  tell(request.sink, std::move(why));
}

/// Those that are held were accepted before: of a priority they go first.
void router_state::route_parked() {
  for (const request_priority priority : {request_priority::interactive, request_priority::batch}) {
    route_held(priority);
    auto& line = parked_[to_size(priority)];
    while (!line.empty() && (route(line.front().request) || step_aside(line.front()))) line.pop_front();
  }
}

void router_state::route_held(request_priority priority) {
  for (routed_request& waiting : std::exchange(held_, {})) {
    const sequence_request& sequence = waiting.engine.sequence;
    if (sequence.priority != priority || !policy_.is_loadable(sequence.adapter) || !route(waiting))
      held_.push_back(std::move(waiting));
  }
}

/// One that began to wait before a replica came back that cannot load its adapter.
bool router_state::step_aside(parked& waiting) {
  if (policy_.is_loadable_everywhere(waiting.request.engine.sequence.adapter)) return false;
  if (waiting.request.held_until == instant{}) waiting.request.held_until = waiting.until;
  park(waiting.request);
  return true;
}

/// So that nobody waits at one replica while another can run more sequences.
void router_state::move_waiting(replica_id from) {
  if (const std::size_t most = policy_.sequences_to_move(from); most > 0)
    tell(replicas_.at(from), give_back_waiting{most});
}

void router_state::refuse_overdue() {
  const instant now = clock_.now();
  const auto is_refused = [&](const parked& waiting) {
    const bool overdue = waiting.until < now;
    if (overdue) refuse_request(waiting.request);
    return overdue;
  };
  for (auto& line : parked_) std::erase_if(line, is_refused);
  std::erase_if(held_, [&](const routed_request& waiting) {
    const bool overdue = waiting.held_until < now;
    const bool is_loadable = policy_.is_loadable(waiting.engine.sequence.adapter);
    if (overdue) refuse(waiting, is_loadable ? no_room_with_adapter : no_adapter_anywhere);
    return overdue;
  });
  if (has_parked(request_priority::batch) || !held_.empty()) wake_soon();
}

void router_state::wake_soon() {
  if (!std::exchange(wake_due_, true)) tell_after(self_, retry_interval, wake{});
}

void router_state::cancel(const cancel_request& cancelled) {
  const auto is_meant = [&](const parked& waiting) { return is_about(cancelled, waiting.request); };
  for (auto& line : parked_) std::erase_if(line, is_meant);
  std::erase_if(held_, [&](const routed_request& waiting) { return is_about(cancelled, waiting); });
  const auto found = routes_.find(cancelled.id);
  if (found == routes_.end()) return;
  found->second.cancelled.push_back(cancelled);
  for (const auto& [replica, answers] : found->second.answers) tell(replicas_.at(replica), cancelled);
}

void router_state::note_ended(const requests_ended& ended) {
  std::size_t over = 0;
  for (const request_id request : ended.requests) over += forget_answers(request, ended.from, 1) ? 1 : 0;
  policy_.ended(ended.from, over);
}

/// A replica was lost, cannot load an adapter, or was asked for them; it has said so before. The requests that it had
/// accepted wait if there is no room elsewhere, longer than new ones. One that reached it too late is as new as it was.
void router_state::take_back(requests_returned& returned) {
  const std::string& fault = returned.adapter_fault;
  for (routed_request& request : returned.requests) {
    const bool is_wanted = !is_cancelled(request);
    forget_answers(request.id, returned.from, request.engine.sequence.answers);
    if (!is_wanted) continue;
    if (!fault.empty())
      route_elsewhere(request, fault);
    else if (!route(request, returned.from))
      park(request);
  }
}

/// A replica cannot load its adapter. Where none can, nobody knows how long that lasts, but an answer that has begun is
/// not broken off soon.
void router_state::route_elsewhere(routed_request& request, const std::string& fault) {
  const bool is_loadable = policy_.is_loadable(request.engine.sequence.adapter);
  if (!is_loadable && request.engine.resumed == 0) return refuse(request, {.error = fault});
  if (!is_loadable || !route(request)) hold(request, {.error = fault});
}

/// Replicas try again to load an adapter, and may give the request back each time: the time goes on.
void router_state::hold(routed_request& request, const request_refused& otherwise) {
  const instant now = clock_.now();
  if (request.held_until == instant{}) request.held_until = now + parts_.longest_pause;
  if (request.held_until < now) return refuse(request, otherwise);
  held_.push_back(std::move(request));
  wake_soon();
}

bool router_state::is_cancelled(const routed_request& request) const {
  const auto found = routes_.find(request.id);
  return found != routes_.end() &&
         std::any_of(found->second.cancelled.begin(), found->second.cancelled.end(),
                     [&](const cancel_request& cancelled) { return is_about(cancelled, request); });
}

/// Returns whether that replica computes none of the request's answers any more.
bool router_state::forget_answers(request_id request, replica_id replica, std::int32_t count) {
  const auto found = routes_.find(request);
  if (found == routes_.end()) return false;
  auto& answers = found->second.answers;
  const auto at = answers.find(replica);
  if (at == answers.end() || (at->second -= count) > 0) return false;
  answers.erase(at);
  if (answers.empty()) routes_.erase(found);
  return true;
}

router_actor spawn_router(caf::actor_system& system, router_parts parts) {
  return spawn_state<router_state>(system, std::move(parts));
}

}  // namespace troupe
