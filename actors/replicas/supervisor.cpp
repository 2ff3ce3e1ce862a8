// Who is a member of the cluster.
#include "actors/replicas/supervisor_impl.hpp"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <cerrno>

#include "actors/command_answers.hpp"
#include "actors/command_fields_impl.hpp"
#include "base/ascii.hpp"
#include "base/host_port.hpp"
#include "cluster/launch/machine.hpp"

namespace troupe {

supervisor_state::supervisor_state(handle::pointer self, supervisor_parts parts)
    : self_(self), parts_(std::move(parts)), members_(parts_.members), lives_(std::uint64_t{parts_.reign} << 32) {}

supervisor_state::handle::behavior_type supervisor_state::make_behavior() {
  return {
      [this](command_call& call) { call.answer(answer_of([&] { return drain(call.command); })); },
      [this](const begin_cluster& begun) { begin(begun); },
      [this](const incoming<join_cluster>& in) { take_join(in); },
      [this](const incoming<heartbeat>& in) { take_heartbeat(in); },
      [this](const incoming<leave_cluster>& in) { take_leave(in.message.incarnation); },
      [this](const link_lost& lost) { note_link_lost(lost.link); },
      [this](const stage_started& started) { take_started(started); },
      [this](const stage_failed& failed) {
        end_life(failed.life, fmt::format("stage {} failed: {}", failed.stage, failed.error),
                 {.at = {failed.stage, failed.tensor_rank}, .in_step = true, .lost = failed.lost});
      },
      [this](const life_rejected& rejected) { reject_life(rejected); },
      [this](wake) {
        look_at_clock();
        tell_after(self_, tick_interval(), wake{});
      },
      [this](stop_now) {
        // A worker with a thread of its own ends with the last handle on it, and schedulers hold some.
        for (const replica_record& replica : replicas_) tell(replica.scheduler, replica_stopped{life_end::planned});
        self_->quit();
      },
  };
}

void supervisor_state::begin(const begin_cluster& begun) {
  training_ = begun.training;
  local_ = begun.local;
  if (local_) local_reporter_.emplace(local_->meter, tick_interval());
  started_ = clock_.now();
  if (local_ && members_.join(local_->hello, started_)) admit(local_->hello, no_link);
  tell(handle(self_), wake{});
}

void supervisor_state::take_join(const incoming<join_cluster>& in) {
  const node_hello& hello = in.message.hello;
  const bool is_idle = !hello.is_worker() && !hello.is_trainer();
  if (is_idle && is_file_name(hello.name))  // nobody would miss it
    return refuse_join(in, {.incarnation = hello.incarnation,
                            .accepted = false,
                            .reason = fmt::format("node {}: it is neither worker nor trainer", hello.name)});
  const bool known = members_.is_member(hello.incarnation);
  const auto outcome = members_.join(hello, clock_.now(), its_process_is_gone(hello));
  join_answer answer{.incarnation = hello.incarnation, .accepted = outcome.ok()};
  if (!outcome) {
    const join_refusal_reason why = outcome.error().reason;
    // It asked before it was given up, and the answer was lost with its link: it is to begin anew, not to end.
    if (why == join_refusal_reason::fenced)
      return parts_.links->send(in.link, heartbeat_answer{hello.incarnation, false});
    answer.try_again = why == join_refusal_reason::name_taken || why == join_refusal_reason::full;
    answer.reason = outcome.error().text;
    return refuse_join(in, std::move(answer));
  }
  refused_.forget(hello.name);
  if (outcome->replaced) lose(hello.name, "its process was replaced by a new one");
  parts_.links->send(in.link, std::move(answer));
  if (!known) admit(hello, in.link);
}

/// Whoever looks after the cluster may not see the node's log. A node that may come back later asks again and again.
/// What is no name may be long, and is not remembered.
void supervisor_state::refuse_join(const incoming<join_cluster>& in, join_answer answer) {
  const std::string& name = in.message.hello.name;
  if (refused_.is_news(is_file_name(name) ? name : std::string(), answer.reason))
    parts_.say("refused " + answer.reason);
  parts_.links->send(in.link, std::move(answer));
}

/// Whether the earlier process of this name has ended, if its id means the same here and to the new one.
bool supervisor_state::its_process_is_gone(const node_hello& hello) const {
  const node_entry* before = members_.find(hello.name);
  if (!before || before->hello.machine != hello.machine || hello.machine != pid_space()) return false;
  return before->hello.pid == hello.pid || (::kill(static_cast<pid_t>(before->hello.pid), 0) != 0 && errno == ESRCH);
}

void supervisor_state::admit(const node_hello& hello, link_id link) {
  parts_.say(fmt::format("{} joined (pid {}, {})", hello.name, hello.pid, hello.host));
  if (link != no_link) {
    nodes_by_link_[link] = hello.incarnation;
    parts_.directory->admit(link);
  }
  if (hello.is_trainer() && link != no_link) admit_trainer(hello, link);
  if (!hello.is_worker()) return;
  last_join_ = clock_.now();
  const worker_actor worker = link == no_link ? local_->worker : spawn_remote_worker(self_->system(), remote(link));
  workers_[hello.name] = {.incarnation = hello.incarnation,
                          .link = link,
                          .worker = worker,
                          .endpoint = hello.endpoint,
                          .meeting = hello.meeting};
  parts_.directory->set_worker(hello.name, worker);
  offers_.set(offer_of(hello));
  take_in(hello.name);
}

void supervisor_state::admit_trainer(const node_hello& hello, link_id link) {
  trainers_[hello.name] = link;
  // Trainers' traffic is not encrypted: it may leave a machine only if the cluster file allows that.
  const std::string reach = parts_.config.insecure ? "" : plain_host(hello.host);
  tell(training_,
       trainer_joined{hello.name, spawn_remote_trainer(self_->system(), remote(link)), hello.meeting, reach});
}

worker_offer supervisor_state::offer_of(const node_hello& hello) const {
  worker_offer offer;
  offer.name = hello.name;
  offer.host = plain_host(hello.host);
  offer.memory = hello.memory_bytes;
  offer.speed = hello.speed;
  offer.threads = static_cast<int>(hello.threads);
  offer.processors = static_cast<int>(hello.processors);
  offer.pool = machine_of(hello.machine);  // containers without a name of their own share its memory
  if (const node_config* said = parts_.config.find(hello.name)) {
    offer.layers = said->layers;
    offer.replica = said->replica;
    if (!said->shares_memory()) offer.pool.clear();
  }
  return offer;
}

void supervisor_state::take_heartbeat(const incoming<heartbeat>& in) {
  const auto [incarnation, report] = in.message;
  const bool is_member = members_.heard(incarnation, clock_.now(), report);
  parts_.links->send(in.link, heartbeat_answer{incarnation, is_member});
  if (!is_member) return;
  const std::string name = members_.find(incarnation)->hello.name;
  const auto longest = std::chrono::duration_cast<std::chrono::milliseconds>(parts_.longest_step).count();
  if (report.busy_ms < static_cast<std::uint64_t>(longest)) return note_free_memory(name, report);
  members_.give_up(incarnation, clock_.now());
  lose(name, "a step took too long");
}

/// When an idle worker came there may have been too little memory for it. A worker that holds layers keeps the offer by
/// which they were placed.
void supervisor_state::note_free_memory(const std::string& name, const node_report& report) {
  if (!workers_.contains(name) || !placement_ || find_worker(*placement_, name)) return;
  if (offers_.raise(name, report.free_bytes.value_or(0))) take_in(name);
}

void supervisor_state::take_leave(incarnation_id node) {
  const node_entry* entry = members_.find(node);
  if (!entry) return;
  const std::string name = entry->hello.name;
  members_.leave(node, clock_.now());
  lose(name, "it left", life_end::planned);
}

void supervisor_state::note_link_lost(link_id link) {
  parts_.directory->expel(link);
  const auto found = nodes_by_link_.find(link);
  if (found == nodes_by_link_.end()) return;
  members_.closed(found->second, clock_.now());
  nodes_by_link_.erase(found);
}

/// The node is no member any more, so what it held is lost.
void supervisor_state::lose(const std::string& name, const std::string& why, life_end how) {
  parts_.say(fmt::format("{} is lost: {}", name, why));
  lose_trainer(name, how);
  const auto found = workers_.find(name);
  if (found == workers_.end()) return;
  const worker_record gone = found->second;
  workers_.erase(found);
  offers_.remove(name);
  parts_.directory->drop_worker(name);
  parts_.directory->expel(gone.link);
  nodes_by_link_.erase(gone.link);
  give_up_worker(name, how);
}

/// A process that ends takes its connection along, and one that hangs in a step still says so. Where the connection
/// stands, the network is cut or the machine is gone: no step's doing. After five seconds of silence libzmq ends it,
/// too, and then they look the same.
void supervisor_state::lose_silent(const std::string& name) {
  if (!parts_.links->is_connected(link_of(name))) return lose(name, "no sign of life");
  lose(name,
       "no sign of life, though its connection has not ended: it cannot be reached, see to its machine and the "
       "network between",
       life_end::lost_link);
}

link_id supervisor_state::link_of(const std::string& name) const {
  if (const auto worker = workers_.find(name); worker != workers_.end()) return worker->second.link;
  const auto trainer = trainers_.find(name);
  return trainer == trainers_.end() ? no_link : trainer->second;
}

void supervisor_state::lose_trainer(const std::string& name, life_end how) {
  const auto gone = trainers_.extract(name);
  if (!gone) return;
  parts_.directory->expel(gone.mapped());
  nodes_by_link_.erase(gone.mapped());
  tell(training_, trainer_lost{name, how});
}

void supervisor_state::look_at_clock() {
  const instant now = clock_.now();
  // Nobody could end it but with the head, so a step of it may take as long as it needs.
  if (local_) members_.heard(local_->hello.incarnation, now, local_reporter_->report(monotonic_clock().now()));
  for (const std::string& name : members_.tick(now)) lose_silent(name);
  if (!placement_) place_all(now);
  end_vacancy(now);
  retry_replicas(now);
  post_status();
}

duration supervisor_state::tick_interval() const {
  return parts_.members.detector.tick_interval(std::chrono::milliseconds(parts_.config.heartbeat_ms));
}

void supervisor_state::refuse_no_worker(const std::string& name) const {
  if (trainers_.contains(name) || name == parts_.config.head().name)
    refuse("{} is no worker: only workers can be drained", name);
  if (const node_entry* gone = members_.find(name); gone && !gone->is_member())
    refuse("{} is no member any more ({}): there is nothing to drain", name, name_of(gone->state));
  refuse("no worker of the cluster is called '{}': see troupe status", name);
}

/// A worker's requests go on elsewhere, then its node ends.
std::string supervisor_state::drain(const client_command& command) {
  const command_fields arguments(command.arguments, command.name);
  const std::string name = arguments.required_text("name");
  const auto found = workers_.find(name);
  if (found == workers_.end()) refuse_no_worker(name);
  const worker_record going = found->second;
  if (going.link == no_link) refuse("{} is the head's own worker: it goes with the head", name);
  if (const auto where = placement_ ? find_worker(*placement_, name) : std::nullopt) {
    const placement_change after = repair(*placement_, name, offers_.all(), parts_.shape, parts_.wanted);
    if (after.effect == placement_change::kind::vacancy && !other_runs(where->replica))
      refuse("nobody could take over the layers of {}: start another node first", name);
  }
  members_.leave(going.incarnation, clock_.now());
  parts_.links->send(going.link, end_node{going.incarnation, "drained"});
  lose(name, "it was drained", life_end::planned);
  return dump({{"name", name}});
}

supervisor_actor spawn_supervisor(caf::actor_system& system, supervisor_parts parts) {
  return spawn_state<supervisor_state>(system, std::move(parts));
}

}  // namespace troupe
