// All interfaces: which actors exist, and the messages between actors of one process; those between processes are in
// messages.hpp. A handle looks the same whether its actor is in this process or behind a link (remote_actors.hpp makes
// those).
#pragma once
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "actors/caf_compat.hpp"
#include "actors/messages.hpp"
#include "actors/requests/answer_listener.hpp"
#include "cluster/adapters/adapter_catalogue.hpp"
#include "cluster/journal/job.hpp"
#include "cluster/routing/routing.hpp"
#include "model/engine/engine_request.hpp"
#include "transport/zmq/link.hpp"

namespace troupe {

class answer_sheet;  // answer_order.hpp
class journal;
class lora_adapter;
class rank_alarm;     // stage_ranks.hpp
struct worker_meter;  // worker_meter.hpp

// --- general ---

/// Time to look at the clock again.
struct wake {};

/// A message together with its link, for actors that answer or must know the sender.
template <message M>
struct incoming {
  link_id link;
  std::uint64_t correlation = 0;
  M message;
};

struct link_lost {
  link_id link;
  link_end end = {};
};

/// The process is about to end: finish what is short.
struct stop_now {};

// --- worker ---

/// Adapter fetcher to worker: an adapter is ready to run, or why it is not.
struct adapter_ready {
  load_adapter order;
  std::shared_ptr<const lora_adapter> adapter;
  std::string error;
};

/// Worker to adapter fetcher: until the stage ends, prepare adapters for these layers only.
struct stage_layers {
  std::int64_t first = 0, count = 0;
};

/// Worker to adapter fetcher: its stage is gone, and with it all that was for the stage. What is to be prepared for
/// none yet (prepare_adapter) is made ready all the same: somebody waits for it.
struct stage_ended {};

/// The process is no member any more: drop whatever it was doing for the cluster.
struct forget_life {};

/// Holds a stage, on the thread that computes it.
using worker_actor = actor_of<start_stage, run_step, activations, load_adapter, drop_adapter, prepare_adapter,
                              adapter_ready, forget_life, link_lost, stop_now>;

/// The wiring to an adapter fetcher: this is your worker.
struct begin_fetching {
  worker_actor worker;
};

/// Fetches the files of adapters and packs them, on a thread of its own.
using adapter_fetcher_actor =
    actor_of<begin_fetching, load_adapter, prepare_adapter, adapter_piece, stage_layers, stage_ended, forget_life>;

/// The head, as workers see it.
using workers_head_actor =
    actor_of<stage_started, stage_failed, step_ending, step_done, adapter_loaded, adapter_prepared, want_piece>;

// --- trainer ---

/// Works on one job at a time, on threads of its own with idle priority, which report to it as it does to the head.
using trainer_actor = actor_of<train_job, stop_training, set_training_share, want_training_piece, training_piece,
                               keep_jobs, training_progress, training_ended, forget_life, link_lost, stop_now>;

/// The head, as trainers see it.
using trainers_head_actor = actor_of<training_progress, training_ended, want_training_piece, training_piece>;

/// What every actor of a node must understand, since its node may stop being a member.
using member_actor = actor_of<forget_life, link_lost, stop_now>;

/// The wiring to a node's agent: this process listens at `endpoint` (empty: nowhere); begin to join the head.
struct begin_membership {
  std::string endpoint;
};

/// The membership of a worker's or trainer's process: joins, sends heartbeats, begins anew when it is fenced.
using node_agent_actor = actor_of<begin_membership, join_answer, heartbeat_answer, end_node, link_lost, wake, stop_now>;

// --- requests and their tokens ---

/// What one step brought for one answer, as tokens.
struct answer_tokens {
  request_id request;
  std::int32_t index = 0;  ///< which answer
  std::vector<token_id> tokens = {};
  std::vector<sampled_token> details = {};  ///< parallel to tokens where logprobs were asked for, else empty
  std::optional<end_reason> end = {};
  std::vector<float> hidden = {};            ///< if asked for; sent with the end
  std::vector<sampled_token> scored = {};    ///< the prompt's tokens, if asked for; they come first
  std::optional<answer_timing> timing = {};  ///< with the first part, if known
  /// The token that ended it, if logprobs were asked for or it is one of the request's stop tokens; not in `tokens`.
  std::optional<sampled_token> ending = {};
};

/// Scheduler to gateway: all tokens of one step.
struct token_batch {
  std::vector<answer_tokens> answers;
};

/// What router and schedulers know of the gateway.
using sink_actor = actor_of<token_batch, request_refused>;

/// Gateway to router to scheduler; back to the router when the replica is lost.
struct routed_request {
  request_id id;
  std::int32_t first_index = 0;  ///< of its first answer: one that has begun goes on elsewhere by itself
  engine_request engine;
  sink_actor sink;
  instant held_until = {};  ///< if not 0: so long it waits for a replica that can load its adapter
  instant accepted = {};    ///< by the gateway: from then on it waits, wherever it does
};

/// Gateway to router to scheduler: nobody waits for these answers any more.
struct cancel_request {
  request_id id;
  std::optional<std::int32_t> answer = {};  ///< only this one; else all of them
};

// --- scheduler and router ---

/// Supervisor to scheduler: all stages are ready for orders, with empty storage.
struct replica_started {
  replica_life life;
  std::vector<std::vector<worker_actor>> stages;  ///< [stage][tensor rank]
  std::int64_t blocks = 0;                        ///< of the storage of each
  int steps_in_flight = 1;                        ///< as many as the stages can compute at the same time
};

/// Supervisor to scheduler: this life is over. The requests go back to the router.
struct replica_stopped {
  life_end why = life_end::loss;
};

/// Scheduler to router: whether this replica takes requests now, and its load.
struct replica_state {
  replica_id replica;
  bool ready = false;
  replica_load load;
};

/// Scheduler to router: answers to these requests have ended or were refused.
struct requests_ended {
  replica_id from;
  std::vector<request_id> requests;  ///< once for each answer
};

/// Router to scheduler: other replicas have room for so many of the sequences that wait.
struct give_back_waiting {
  std::size_t most = 0;
};

/// Scheduler to router: find another replica for these requests.
struct requests_returned {
  replica_id from;
  std::vector<routed_request> requests;
  std::string adapter_fault = {};  ///< why their adapter cannot be loaded there; empty: that is not why
};

/// Gives the stages of one replica their orders, and the gateway the tokens of its requests.
using scheduler_actor = actor_of<routed_request, cancel_request, give_back_waiting, replica_started, replica_stopped,
                                 step_ending, step_done, adapter_loaded, wake>;

/// Supervisor to router: a replica exists from now on.
struct replica_added {
  replica_id replica;
  scheduler_actor scheduler;
};

/// Chooses a replica for each request.
using router_actor =
    actor_of<routed_request, cancel_request, replica_added, replica_state, requests_ended, requests_returned, wake>;

// --- gateway ---

/// Anyone to gateway: answer this. `request_numbers` gives the id.
struct begin_request {
  request_id id;
  engine_request engine;          ///< lacks only the adapter's version
  std::string adapter;            ///< name, name@version, or empty for the bare base
  std::uint64_t skip_tokens = 0;  ///< of each answer; the listener has them already
  bool skip_special = true;       ///< special tokens are no part of the text
  bool keep_stop = false;         ///< the stop text or stop token that ends an answer is part of its text
  std::shared_ptr<answer_listener> listener;
  /// Shared by requests that are answered together: the first to begin decides the version for all.
  std::shared_ptr<std::optional<adapter_version>> version = {};
};

/// Anyone to gateway: nobody listens to this request any more.
struct end_request {
  request_id id;
};

/// Adapter store to gateway: the name can be resolved now, or why it cannot.
struct adapter_found {
  std::string name, error;
  bool is_unknown = false;  ///< nothing has this name; otherwise it exists but cannot be used
  bool may_pass = false;    ///< nothing is wrong with it: the head's disk is full, say
};

/// Takes requests from all who ask, and turns tokens into text for them.
using gateway_actor = actor_of<token_batch, request_refused, begin_request, end_request, adapter_found, wake, stop_now>;

// --- commands ---

/// Anyone to the actor that knows the command: carry it out. These two functions may be called on any thread, `answer`
/// once.
struct command_call {
  client_command command;
  std::function<void(command_answer)> answer;
  std::function<bool()> is_wanted = [] { return true; };  ///< whether somebody waits for the answer
};

// --- adapter store ---

/// Gateway to adapter store: a request names an adapter that is not published; publish the folder of that name, if
/// there is one.
struct find_adapter {
  std::string name;
  gateway_actor asker;
};

/// What became of publish_adapter.
struct adapter_published {
  std::string full_name = {};                 ///< like "pricing@3"
  std::string error = {};                     ///< why there is no version; empty: there is one
  command_fault fault = command_fault::none;  ///< foreign: the name is another's
};

/// Training desk to adapter store: make a version of this folder, unless nobody wants it any more once the workers have
/// it. These two functions may be called on any thread, `answer` once.
struct publish_adapter {
  std::string name;
  std::filesystem::path folder;
  std::function<void(const adapter_published&)> answer;
  std::function<bool()> is_wanted = [] { return true; };
  /// Called with the version's name on the journal's thread, for what is to be written together with the version. If it
  /// throws input_error, there is no version.
  std::function<void(journal&, const std::string& full_name)> write_with_it = {};
};

/// Jobs to adapter store: what save_catalogue asked for is on the disk, or why it is not.
struct catalogue_saved {
  std::uint64_t ticket = 0;
  std::optional<command_answer> refusal = {};
};

/// Keeps the versions and files of adapters.
using adapter_store_actor = actor_of<command_call, incoming<want_piece>, find_adapter, publish_adapter, catalogue_saved,
                                     adapter_prepared, wake, stop_now>;

// --- training ---

/// Supervisor to training desk: a node with a trainer has become a member, or is one no longer.
struct trainer_joined {
  std::string name;
  trainer_actor trainer;
  std::string meeting;  ///< endpoint where it waits for others that share a job
  std::string reach;    ///< trainers can meet if theirs are equal
};
struct trainer_lost {
  std::string name;
  life_end why = life_end::loss;
};

/// Jobs to training desk: a fine-tune was cancelled, paused or resumed.
struct job_changed {
  std::string job;
  job_state state = job_state::queued;
};

/// To an actor that gave another one a function to call: run this on your own thread.
struct carry_on {
  std::function<void()> run;
};

/// The newest of what the journal has of a fine-tune.
struct fine_tune_mark {
  std::int64_t step = -1;        ///< of its figures; -1: there are none
  bool is_validation = false;    ///< these are of the validation behind that step
  std::int64_t checkpoint = -1;  ///< -1: none was ever written
  std::string trainer = {};      ///< that was in charge of that step; empty: unknown
};

/// Jobs to training desk, once: the accepted jobs that have not ended, oldest first.
struct begin_training {
  std::vector<job_info> unfinished = {};
  std::map<std::string, fine_tune_mark> marks = {};  ///< of fine-tunes that have begun
};

/// Gives jobs to trainers, keeps their files, gets their results published.
using training_desk_actor =
    actor_of<command_call, begin_training, job_changed, trainer_joined, trainer_lost, training_progress, training_ended,
             want_training_piece, training_piece, carry_on, wake, stop_now>;

// --- jobs ---

/// Adapter store to jobs, which owns the journal: write this down before it takes effect. All of it is written, or
/// nothing.
struct save_catalogue {
  std::uint64_t ticket = 0;
  catalogue_records changes;
  adapter_store_actor asker;
  /// May throw input_error, and then nothing is written.
  std::function<void(journal&)> together_with = {};
};

/// A job's listener to jobs: a line was answered, or was refused and may be tried again.
struct line_answered {
  request_id request;  ///< the first one of the line
  std::shared_ptr<const answer_sheet> sheet;
};
struct line_refused {
  request_refused why;  ///< names the first request of the line, whichever was refused
};

/// The wiring to jobs: this is the gateway, and the training desk; take up unfinished jobs.
struct begin_jobs {
  gateway_actor gateway;
  training_desk_actor training;
};

/// Training desk to jobs: use the journal, on its owner's thread. `use` may throw journal_failure; then it is called
/// again later, in the order of these messages. Where somebody waits for an answer there is `on_failure`: that is
/// called instead, with the reason, and such a use waits for no earlier one.
struct use_journal {
  std::function<void(journal&)> use;
  std::function<void(const std::string& why)> on_failure = {};
};

/// Owns the journal, and answers batch jobs line by line.
using jobs_actor =
    actor_of<command_call, save_catalogue, use_journal, begin_jobs, line_answered, line_refused, wake, stop_now>;

// --- supervisor ---

/// A worker in the head's own process.
struct local_worker {
  worker_actor worker;
  node_hello hello;
  std::shared_ptr<rank_alarm> alarm;
  std::shared_ptr<const worker_meter> meter;
};

/// The wiring to the supervisor: this is the training desk, and perhaps a worker in the head's process; nodes may join
/// from now on.
struct begin_cluster {
  training_desk_actor training;
  std::optional<local_worker> local;
};

/// Scheduler to supervisor: a stage has reported something impossible, so this life is over.
struct life_rejected {
  replica_life life;
  std::string why;
};

/// Knows the nodes of the cluster, and makes replicas of its workers. Its command is "drain".
using supervisor_actor =
    actor_of<command_call, begin_cluster, incoming<join_cluster>, incoming<heartbeat>, incoming<leave_cluster>,
             link_lost, stage_started, stage_failed, life_rejected, wake, stop_now>;

// --- clients on the wire ---

/// Which request of which client.
struct client_request_name {
  link_id link;
  std::uint64_t id = 0;  ///< the client's, which may have cancelled it and given the id to another one
  request_id request;
};
/// The gateway's thread to client desk: a client's request has ended.
struct client_done {
  client_request_name whose;
};

/// Speaks with clients on the wire.
using client_desk_actor = actor_of<incoming<client_request>, incoming<client_cancel>, incoming<client_command>,
                                   client_done, carry_on, link_lost, stop_now>;

}  // namespace troupe
