// Everything that travels between processes of a cluster, and between them and clients. One comment per message; the
// kind is its number on the wire and never changes its meaning.
//
// This header includes neither CAF nor ZeroMQ, since clients use it as well. Messages that stay within one process are
// in interfaces.hpp.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/fields.hpp"
#include "base/shared_bytes.hpp"
#include "cluster/members/node_hello.hpp"
#include "model/engine/stages/step_order.hpp"
#include "model/ops/kernels.hpp"

namespace troupe {

/// A struct with a number on the wire. A member `shared_bytes attachment` is sent after the fields without being
/// copied.
template <class T>
concept message = described<T> && requires {
  { T::kind } -> std::convertible_to<std::uint16_t>;
};

// --- nodes and the head ---

/// Node to head: it wants to join. Repeated until it is answered.
struct join_cluster {
  static constexpr std::uint16_t kind = 1;
  node_hello hello;

  auto fields() { return std::tie(hello); }
};

/// The head's answer to join_cluster. A node that is refused and may not try again ends with the reason.
struct join_answer {
  static constexpr std::uint16_t kind = 2;
  incarnation_id incarnation;
  bool accepted = false;
  bool try_again = false;   ///< the reason for the refusal may go away
  std::string reason = {};  ///< empty if it is accepted

  auto fields() { return std::tie(incarnation, accepted, try_again, reason); }
};

/// Node to head, several times a second: it lives.
struct heartbeat {
  static constexpr std::uint16_t kind = 3;
  incarnation_id incarnation;
  node_report report;

  auto fields() { return std::tie(incarnation, report); }
};

/// The head's answer to each heartbeat, and to join_cluster of an incarnation that was fenced. A node that hears that
/// it is no member forgets everything and joins anew. One that hears nothing for long keeps trying.
struct heartbeat_answer {
  static constexpr std::uint16_t kind = 4;
  incarnation_id incarnation;
  bool member = false;

  auto fields() { return std::tie(incarnation, member); }
};

/// Node to head: it leaves, since it was told to end. Not answered.
struct leave_cluster {
  static constexpr std::uint16_t kind = 5;
  incarnation_id incarnation;

  auto fields() { return std::tie(incarnation); }
};

/// Head to node: end.
struct end_node {
  static constexpr std::uint16_t kind = 6;
  incarnation_id incarnation;
  std::string reason;

  auto fields() { return std::tie(incarnation, reason); }
};

// --- a replica and its stages ---

/// Which life of which replica a message belongs to. A receiver that is in another life drops the message.
struct replica_life {
  replica_id replica;
  epoch_id epoch;

  friend bool operator==(const replica_life&, const replica_life&) = default;
  auto fields() { return std::tie(replica, epoch); }
};

constexpr kv_kind last_enumerator(kv_kind) {
  return kv_kind::i8;
}

/// Supervisor to worker: hold these layers, with empty storage of so many blocks. Ends any other stage of the worker.
struct start_stage {
  static constexpr std::uint16_t kind = 16;
  replica_life life;
  std::uint32_t stage = 0;
  std::int64_t first_layer = 0, layers = 0;
  std::int64_t blocks = 0, context = 0;
  std::int32_t max_rows = 0, max_sequences = 0;  ///< of a step
  std::int32_t states = 0;                       ///< to keep, of a model that keeps them
  std::int32_t lookup_tokens = 0;
  kv_kind kv = kv_kind::f16;  ///< the head's choice; the worker's own file does not count
  std::string next;           ///< endpoint of the next stage; empty: this one is the last
  std::uint32_t tensor_rank = 0, tensor_ranks = 1;
  std::string tensor_meeting;  ///< where the ranks of this stage find each other

  auto fields() {
    return std::tie(life, stage, first_layer, layers, blocks, context, max_rows, max_sequences, states, lookup_tokens,
                    kv, next, tensor_rank, tensor_ranks, tensor_meeting);
  }
};

/// Worker to supervisor: the stage is ready for orders, or why it is not.
struct stage_started {
  static constexpr std::uint16_t kind = 17;
  replica_life life;
  std::uint32_t stage = 0, tensor_rank = 0;
  std::optional<seat> lost = {};  ///< whom it does not reach, the next stage or a rank: either may be at fault
  std::string error = {};         ///< empty: ready

  auto fields() { return std::tie(life, stage, tensor_rank, lost, error); }
};

/// Scheduler to every stage: one step. Orders are carried out in the order in which they arrive.
struct run_step {
  static constexpr std::uint16_t kind = 18;
  replica_life life;
  step_order step;
  bool goes_on = false;  ///< has only some of the answers that the step opens: the rest of the order follows

  auto fields() { return std::tie(life, step, goes_on); }
};

/// Stage to next stage: the hidden states of a step, f32 [rows, stride].
struct activations {
  static constexpr std::uint16_t kind = 19;
  replica_life life;
  step_id step;
  shared_bytes attachment;

  auto fields() { return std::tie(life, step); }
};

/// A stage that knows what it chose tells the scheduler that a step is nearly done. If the order for the next one comes
/// now, nobody has to wait for it.
struct step_ending {
  static constexpr std::uint16_t kind = 22;
  replica_life life;
  step_id step;

  auto fields() { return std::tie(life, step); }
};

/// Last stage to scheduler: what a step chose.
struct step_done {
  static constexpr std::uint16_t kind = 20;
  replica_life life;
  step_outcome outcome;

  auto fields() { return std::tie(life, outcome); }
};

/// Stage to supervisor: it cannot go on in this life (an impossible order, no more memory, a lost neighbour).
struct stage_failed {
  static constexpr std::uint16_t kind = 21;
  replica_life life;
  std::uint32_t stage = 0, tensor_rank = 0;
  std::optional<seat> lost = {};  ///< as in stage_started
  std::string error;

  auto fields() { return std::tie(life, stage, tensor_rank, lost, error); }
};

// --- adapters ---

/// One of an adapter's files.
struct adapter_file_info {
  std::string name;
  std::uint64_t bytes = 0;

  auto fields() { return std::tie(name, bytes); }
};

/// Scheduler to every stage: make this adapter ready. The stage answers adapter_loaded.
struct load_adapter {
  static constexpr std::uint16_t kind = 32;
  replica_life life;
  adapter_version version;
  std::string full_name;  ///< like "pricing@3"
  std::string sha256;     ///< digest of its files, which names its folder in every store
  std::vector<adapter_file_info> files;

  auto fields() { return std::tie(life, version, full_name, sha256, files); }
};

/// Stage to scheduler: the adapter is ready, or why it is not.
struct adapter_loaded {
  static constexpr std::uint16_t kind = 33;
  replica_life life;
  adapter_version version;
  std::string error;  ///< empty: ready

  auto fields() { return std::tie(life, version, error); }
};

/// Scheduler to every stage: no order names this adapter any more, so its memory may be freed.
struct drop_adapter {
  static constexpr std::uint16_t kind = 34;
  replica_life life;
  adapter_version version;

  auto fields() { return std::tie(life, version); }
};

/// Worker or client to adapter store: send a piece of a file. The answer has the same correlation.
struct want_piece {
  static constexpr std::uint16_t kind = 35;
  std::string sha256, file;
  std::uint64_t offset = 0;

  auto fields() { return std::tie(sha256, file, offset); }
};

/// The adapter store's answer: bytes of the file from the offset on; none if there is an error.
struct adapter_piece {
  static constexpr std::uint16_t kind = 36;
  std::string sha256, file;
  std::uint64_t offset = 0;
  std::string error = {};
  shared_bytes attachment = {};

  auto fields() { return std::tie(sha256, file, offset, error); }
};

/// Adapter store to every worker, before a version is published: fetch its files and pack them for the kernels. The
/// worker answers adapter_prepared.
struct prepare_adapter {
  static constexpr std::uint16_t kind = 37;
  std::uint64_t ticket = 0;
  std::string full_name;
  std::string sha256;
  std::vector<adapter_file_info> files;

  auto fields() { return std::tie(ticket, full_name, sha256, files); }
};

/// Worker to adapter store: the adapter is ready, or why it is not.
struct adapter_prepared {
  static constexpr std::uint16_t kind = 38;
  std::uint64_t ticket = 0;
  std::string error;  ///< empty: ready

  auto fields() { return std::tie(ticket, error); }
};

// --- training ---

/// One assignment of a job to a trainer; the head numbers them. Messages that name an older lease are ignored.
using training_lease = strong_id<struct training_lease_tag, std::uint64_t>;

/// A file of a job: data, or a part of the result.
struct training_file {
  std::string name;
  std::uint64_t bytes = 0;
  std::string sha256;

  auto fields() { return std::tie(name, bytes, sha256); }
};

/// Head to trainer: work on this job, from its checkpoint if there is one.
struct train_job {
  static constexpr std::uint16_t kind = 40;
  training_lease lease;
  std::string job;
  std::string spec;  ///< JSON, as training_spec.hpp reads it
  model_id model;    ///< the trainer's base must be this model
  double share = 1;  ///< the part of the time that training may use
  std::vector<training_file> files;
  std::uint32_t rank = 0, ranks = 1;  ///< of the trainers that share it
  training_lease first;               ///< the lease of rank 0
  std::string meeting;                ///< endpoint where they meet

  auto fields() { return std::tie(lease, job, spec, model, share, files, rank, ranks, first, meeting); }
};

/// Head to trainer: leave the job, with a checkpoint or for good.
struct stop_training {
  static constexpr std::uint16_t kind = 41;
  training_lease lease;
  std::string forget;  ///< a job that is over: remove everything of it, whoever worked on it last; empty: none is

  auto fields() { return std::tie(lease, forget); }
};

/// Head to trainer: use so much of the time from now on. Depends on whether requests run.
struct set_training_share {
  static constexpr std::uint16_t kind = 42;
  training_lease lease;
  double share = 1;

  auto fields() { return std::tie(lease, share); }
};

/// The figures of one step, or of one validation on the held-out examples.
struct training_point {
  std::int64_t step = 0;
  double loss = 0, accuracy = 0;
  double rate = 0;  ///< the learning rate
  bool is_validation = false;
  std::int64_t tokens = 0;  ///< of the steps so far

  auto fields() { return std::tie(step, loss, accuracy, rate, is_validation, tokens); }
};

/// Trainer to head: the progress of its job.
struct training_progress {
  static constexpr std::uint16_t kind = 43;
  training_lease lease = {};
  std::int64_t step = 0, steps = 0;
  std::int64_t tokens = 0;                  ///< of the steps so far, whoever made them
  double tokens_per_second = 0;             ///< recently
  std::int64_t checkpoint = -1;             ///< the step that the newest checkpoint goes on from; -1: there is none
  std::string message = {};                 ///< for people; may be empty
  std::vector<training_point> points = {};  ///< in order; who goes on tells the newest from before again
  bool is_warning = false;                  ///< the message
  std::int64_t best_step = -1;              ///< that did best on what is held out; -1: nothing was measured
  double best_loss = 0;

  auto fields() {
    return std::tie(lease, step, steps, tokens, tokens_per_second, checkpoint, message, points, is_warning, best_step,
                    best_loss);
  }
};

/// Trainer to head: it has left the job. Files, if any, are the adapter; the trainer keeps them until stop_training. If
/// trainers share a job, only rank 0 reports that it is done.
struct training_ended {
  static constexpr std::uint16_t kind = 44;
  training_lease lease;
  std::string error;  ///< why the job cannot be done; empty with no files: the trainer was told to stop
  std::vector<training_file> files;
  bool is_alone = false;  ///< the trainer has lost the others: the job can be done, but not by this group
  bool may_pass = false;  ///< its disk is full or its base another, say: once that is mended, the job goes on

  auto fields() { return std::tie(lease, error, files, is_alone, may_pass); }
};

/// Head to trainer or trainer to head: send a piece of a job's file.
struct want_training_piece {
  static constexpr std::uint16_t kind = 45;
  training_lease lease;
  std::string file;
  std::uint64_t offset = 0;

  auto fields() { return std::tie(lease, file, offset); }
};

/// The answer to want_training_piece: the piece, or why there is none.
struct training_piece {
  static constexpr std::uint16_t kind = 46;
  training_lease lease;
  std::string file;
  std::uint64_t offset = 0;
  std::string error;
  shared_bytes attachment;

  auto fields() { return std::tie(lease, file, offset, error); }
};

/// Head to trainer, when it has joined: these jobs are not over. What the trainer has of others from before is removed.
struct keep_jobs {
  static constexpr std::uint16_t kind = 47;
  std::vector<std::string> jobs;

  auto fields() { return std::tie(jobs); }
};

// --- clients ---

/// Client to head: answer this. The client chooses `id`, which names the request in every answer.
struct client_request {
  static constexpr std::uint16_t kind = 48;
  std::uint64_t id = 0;
  std::string text;              ///< a prompt, or instead
  std::vector<token_id> tokens;  ///< a prompt as tokens, or instead
  std::string messages;          ///< a chat: a JSON list of {role, content}, rendered by the model's template
  std::string adapter;           ///< name or name@version; empty: the bare base
  std::int32_t answers = 1;
  bool batch = false;  ///< priority: behind interactive requests
  sampling_params sampling;
  std::uint64_t skip_tokens = 0;  ///< of each answer; the client has them already

  auto fields() { return std::tie(id, text, tokens, messages, adapter, answers, batch, sampling, skip_tokens); }
};

/// Client to head: stop working on this request.
struct client_cancel {
  static constexpr std::uint16_t kind = 49;
  std::uint64_t id = 0;

  auto fields() { return std::tie(id); }
};

/// Head to client: the next part of one answer.
struct client_text {
  static constexpr std::uint16_t kind = 50;
  std::uint64_t id = 0;
  std::int32_t index = 0;  ///< which answer
  std::string text;        ///< only whole characters that cannot change any more
  std::vector<token_id> tokens;
  std::vector<sampled_token> details;  ///< if logprobs were asked for
  std::string finish;                  ///< "stop" or "length"; empty before the end
  std::int64_t prompt_tokens = 0;      ///< with the end
  std::string adapter;                 ///< with the first part and the end: the version that answers, like "pricing@3"

  auto fields() { return std::tie(id, index, text, tokens, details, finish, prompt_tokens, adapter); }
};

/// Head to client: no (more) answers will come, and why.
struct client_refused {
  static constexpr std::uint16_t kind = 51;
  std::uint64_t id = 0;
  std::string error;
  bool bad_input = false;                  ///< the request is wrong; otherwise the cluster's state is the reason
  std::uint64_t retry_after_ms = 0;        ///< 0: trying again is of no use
  std::string field_name = {}, code = {};  ///< of a field_error

  auto fields() { return std::tie(id, error, bad_input, retry_after_ms, field_name, code); }
};

/// Client to head: a command with one answer ("status", "adapters.load", "job.seal" …), and its arguments as a JSON
/// object. The answer has the same correlation.
struct client_command {
  static constexpr std::uint16_t kind = 52;
  std::string name, arguments;

  auto fields() { return std::tie(name, arguments); }
};

enum class command_fault : std::uint8_t {
  none,
  bad_input,  ///< the command is wrong
  unknown,    ///< it names something that does not exist
  failed,     ///< because of the cluster's state, or of a disk
  full,       ///< there are as many as may be: later, perhaps
  foreign     ///< it names what is another's
};
constexpr command_fault last_enumerator(command_fault) {
  return command_fault::foreign;
}

/// Head to client: what the command returned, as JSON, or why it did not.
struct command_answer {
  static constexpr std::uint16_t kind = 53;
  std::string result = {}, error = {};
  command_fault fault = command_fault::none;
  std::string error_outside = {};  ///< not sent: what HTTP's clients are told, if the error is nothing for them
  std::string field = {};          ///< not sent: of a field_error

  bool is_refused() const { return fault != command_fault::none; }

  auto fields() { return std::tie(result, error, fault); }
};

}  // namespace troupe
