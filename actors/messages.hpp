// Everything that travels between processes of a cluster, and between them and clients. One comment per message; the
// kind is its number on the wire and never changes its meaning.
//
// This header knows neither CAF nor ZeroMQ: clients use it too. What actors of one process tell each other beside these
// is in interfaces.hpp.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "base/fields.hpp"
#include "base/shared_bytes.hpp"
#include "cluster/members/membership.hpp"
#include "model/engine/stages/step_order.hpp"
#include "model/ops/kernels.hpp"

namespace troupe {

/// A struct with a number on the wire. A member `shared_bytes attachment` travels beside the fields, uncopied.
template <class T>
concept message = described<T> && requires {
  { T::kind } -> std::convertible_to<std::uint16_t>;
};

// --- nodes and the head ---

/// A node comes, or repeats itself until it is answered.
struct join_cluster {
  static constexpr std::uint16_t kind = 1;
  node_hello hello;

  template <class Self>
  static auto fields(Self& self) {
    return std::tie(self.hello);
  }
};

/// The head's answer to join_cluster. A node that is refused for good ends with the reason.
struct join_answer {
  static constexpr std::uint16_t kind = 2;
  incarnation_id incarnation;
  bool accepted = false;
  bool try_again = false;  ///< the refusal may pass by itself
  std::string reason;

  template <class Self>
  static auto fields(Self& self) {
    return std::tie(self.incarnation, self.accepted, self.try_again, self.reason);
  }
};

/// A node's sign of life, several times a second.
struct heartbeat {
  static constexpr std::uint16_t kind = 3;
  incarnation_id incarnation;
  node_report report;

  template <class Self>
  static auto fields(Self& self) {
    return std::tie(self.incarnation, self.report);
  }
};

/// The head's answer to each heartbeat: a node that hears that it is no member forgets everything and joins anew; one
/// that hears nothing for long keeps trying.
struct heartbeat_answer {
  static constexpr std::uint16_t kind = 4;
  incarnation_id incarnation;
  bool member = false;

  template <class Self>
  static auto fields(Self& self) {
    return std::tie(self.incarnation, self.member);
  }
};

/// A node goes by itself (it was told to end); the head answers nothing.
struct leave_cluster {
  static constexpr std::uint16_t kind = 5;
  incarnation_id incarnation;

  template <class Self>
  static auto fields(Self& self) {
    return std::tie(self.incarnation);
  }
};

/// The head sends a node away: it ends.
struct end_node {
  static constexpr std::uint16_t kind = 6;
  incarnation_id incarnation;
  std::string reason;

  template <class Self>
  static auto fields(Self& self) {
    return std::tie(self.incarnation, self.reason);
  }
};

// --- a replica and its stages ---

/// Which life of which replica a message belongs to. Whoever lives in another one drops it.
struct replica_life {
  replica_id replica;
  epoch_id epoch;

  friend bool operator==(const replica_life&, const replica_life&) = default;
  template <class Self>
  static auto fields(Self& self) {
    return std::tie(self.replica, self.epoch);
  }
};

constexpr kv_kind last_enumerator(kv_kind) {
  return kv_kind::i8;
}

/// Supervisor to worker: hold these layers, with storage for so many blocks, from nothing. Ends any other stage there.
struct start_stage {
  static constexpr std::uint16_t kind = 16;
  replica_life life;
  std::uint32_t stage = 0, stages = 1;
  std::int64_t first_layer = 0, layers = 0;
  std::int64_t blocks = 0, context = 0;
  std::int32_t max_rows = 0, max_sequences = 0;  ///< of a step
  std::int32_t lookup_tokens = 0;
  kv_kind kv = kv_kind::f16;  ///< the head's choice, whatever the worker's own file says
  std::string next;           ///< endpoint of the stage that follows; empty for the last
  std::uint32_t tensor_rank = 0, tensor_ranks = 1;
  std::string tensor_meeting;  ///< where the ranks of this stage find each other

  template <class Self>
  static auto fields(Self& self) {
    return std::tie(self.life, self.stage, self.stages, self.first_layer, self.layers, self.blocks, self.context,
                    self.max_rows, self.max_sequences, self.lookup_tokens, self.kv, self.next, self.tensor_rank,
                    self.tensor_ranks, self.tensor_meeting);
  }
};

/// Worker to supervisor: the stage is ready for orders, or why it cannot be.
struct stage_started {
  static constexpr std::uint16_t kind = 17;
  replica_life life;
  std::uint32_t stage = 0, tensor_rank = 0;
  std::string error;  ///< empty: ready

  template <class Self>
  static auto fields(Self& self) {
    return std::tie(self.life, self.stage, self.tensor_rank, self.error);
  }
};

/// Scheduler to every stage: one step. Orders are carried out as they come.
struct run_step {
  static constexpr std::uint16_t kind = 18;
  replica_life life;
  step_order order;
  bool goes_on = false;  ///< there are only some of the answers that open; more of the same order follows

  template <class Self>
  static auto fields(Self& self) {
    return std::tie(self.life, self.order, self.goes_on);
  }
};

/// Stage to next stage: the hidden states of a step, f32 [rows, stride].
struct activations {
  static constexpr std::uint16_t kind = 19;
  replica_life life;
  step_id step;
  shared_bytes attachment;

  template <class Self>
  static auto fields(Self& self) {
    return std::tie(self.life, self.step);
  }
};

/// Last stage to scheduler: what a step chose.
struct step_done {
  static constexpr std::uint16_t kind = 20;
  replica_life life;
  step_outcome outcome;

  template <class Self>
  static auto fields(Self& self) {
    return std::tie(self.life, self.outcome);
  }
};

/// Stage to supervisor: it cannot go on in this life (an order it cannot carry out, no more memory, a lost neighbour).
struct stage_failed {
  static constexpr std::uint16_t kind = 21;
  replica_life life;
  std::uint32_t stage = 0;
  std::string error;

  template <class Self>
  static auto fields(Self& self) {
    return std::tie(self.life, self.stage, self.error);
  }
};

// --- adapters ---

/// One of an adapter's files.
struct adapter_file_info {
  std::string name;
  std::uint64_t bytes = 0;

  template <class Self>
  static auto fields(Self& self) {
    return std::tie(self.name, self.bytes);
  }
};

/// Scheduler to every stage: have this adapter ready. The stage answers adapter_loaded.
struct load_adapter {
  static constexpr std::uint16_t kind = 32;
  replica_life life;
  adapter_version version;
  std::string full_name;  ///< "pricing@3"
  std::string sha256;     ///< of its files: the name of its folder in every adapter store
  std::vector<adapter_file_info> files;

  template <class Self>
  static auto fields(Self& self) {
    return std::tie(self.life, self.version, self.full_name, self.sha256, self.files);
  }
};

/// Stage to scheduler.
struct adapter_loaded {
  static constexpr std::uint16_t kind = 33;
  replica_life life;
  std::uint32_t stage = 0, tensor_rank = 0;
  adapter_version version;
  std::string error;  ///< empty: ready

  template <class Self>
  static auto fields(Self& self) {
    return std::tie(self.life, self.stage, self.tensor_rank, self.version, self.error);
  }
};

/// Scheduler to every stage: no order names this adapter any more, its memory can go.
struct drop_adapter {
  static constexpr std::uint16_t kind = 34;
  replica_life life;
  adapter_version version;

  template <class Self>
  static auto fields(Self& self) {
    return std::tie(self.life, self.version);
  }
};

/// Worker or client to adapter store: a piece of a file, please. The frame's correlation comes back with the answer.
struct want_piece {
  static constexpr std::uint16_t kind = 35;
  std::string sha256, file;
  std::uint64_t offset = 0;

  template <class Self>
  static auto fields(Self& self) {
    return std::tie(self.sha256, self.file, self.offset);
  }
};

/// The adapter store's answer: bytes from the offset on; none where there is an error.
struct adapter_piece {
  static constexpr std::uint16_t kind = 36;
  std::string sha256, file;
  std::uint64_t offset = 0;
  std::string error;
  shared_bytes attachment;

  template <class Self>
  static auto fields(Self& self) {
    return std::tie(self.sha256, self.file, self.offset, self.error);
  }
};

/// Adapter store to every worker, before a version is published: have it here, and ready for the kernels. The worker
/// answers adapter_prepared.
struct prepare_adapter {
  static constexpr std::uint16_t kind = 37;
  std::uint64_t ticket = 0;
  std::string full_name;
  std::string sha256;
  std::vector<adapter_file_info> files;

  template <class Self>
  static auto fields(Self& self) {
    return std::tie(self.ticket, self.full_name, self.sha256, self.files);
  }
};

/// Worker to adapter store: it is, or why not.
struct adapter_prepared {
  static constexpr std::uint16_t kind = 38;
  std::uint64_t ticket = 0;
  std::string error;  ///< empty: ready

  template <class Self>
  static auto fields(Self& self) {
    return std::tie(self.ticket, self.error);
  }
};

// --- training ---

/// A job in a trainer's hands, for once: the head counts them up. Whoever speaks of another lease is not heard.
using training_lease = strong_id<struct training_lease_tag, std::uint64_t>;

/// A file that a job has: what to learn from, or what came out.
struct training_file {
  std::string name;
  std::uint64_t bytes = 0;
  std::string sha256;

  template <class Self>
  static auto fields(Self& self) {
    return std::tie(self.name, self.bytes, self.sha256);
  }
};

/// Head to trainer: work on this job, from its checkpoint where there is one.
struct train_job {
  static constexpr std::uint16_t kind = 40;
  training_lease lease;
  std::string job;
  std::string spec;  ///< JSON, as training_spec.hpp reads it
  model_id model;    ///< the base must be this one
  double share = 1;  ///< of the time that may be used
  std::vector<training_file> files;
  std::uint32_t rank = 0, ranks = 1;  ///< of the trainers that share it
  training_lease first;               ///< rank 0's
  std::string meeting;                ///< where they find each other

  template <class Self>
  static auto fields(Self& self) {
    return std::tie(self.lease, self.job, self.spec, self.model, self.share, self.files, self.rank, self.ranks,
                    self.first, self.meeting);
  }
};

/// Head to trainer: leave the job, with a checkpoint, or for good. The trainer answers training_ended.
struct stop_training {
  static constexpr std::uint16_t kind = 41;
  training_lease lease;
  bool forget = false;  ///< the job is over: nothing of it is needed any more

  template <class Self>
  static auto fields(Self& self) {
    return std::tie(self.lease, self.forget);
  }
};

/// Head to trainer: so much of the time may be used from now on, since requests run or do not.
struct set_training_share {
  static constexpr std::uint16_t kind = 42;
  training_lease lease;
  double share = 1;

  template <class Self>
  static auto fields(Self& self) {
    return std::tie(self.lease, self.share);
  }
};

/// One step, or one look at the examples that were held out.
struct training_point {
  std::int64_t step = 0;
  double loss = 0, accuracy = 0;
  double rate = 0;  ///< of learning
  bool is_validation = false;

  template <class Self>
  static auto fields(Self& self) {
    return std::tie(self.step, self.loss, self.accuracy, self.rate, self.is_validation);
  }
};

/// Trainer to head: how far it is.
struct training_progress {
  static constexpr std::uint16_t kind = 43;
  training_lease lease;
  std::int64_t step = 0, steps = 0;
  std::int64_t tokens = 0;       ///< that went through the model in this process
  double tokens_per_second = 0;  ///< lately
  std::int64_t checkpoint = -1;  ///< the step that going on would begin with; -1: none yet
  std::string message;           ///< for people; may be empty
  std::vector<training_point> points;

  template <class Self>
  static auto fields(Self& self) {
    return std::tie(self.lease, self.step, self.steps, self.tokens, self.tokens_per_second, self.checkpoint,
                    self.message, self.points);
  }
};

/// Trainer to head: it has left the job. With files: they are the adapter, and wait to be fetched until stop_training.
/// Of trainers that share a job only rank 0 says that it is done.
struct training_ended {
  static constexpr std::uint16_t kind = 44;
  training_lease lease;
  std::string error;  ///< the job cannot be done; empty with no files: it was told to stop
  std::vector<training_file> files;
  bool is_alone = false;  ///< it has lost the others: the job can be done, but not by this group

  template <class Self>
  static auto fields(Self& self) {
    return std::tie(self.lease, self.error, self.files, self.is_alone);
  }
};

/// Either side to the other: a piece of a job's file, please.
struct want_training_piece {
  static constexpr std::uint16_t kind = 45;
  training_lease lease;
  std::string file;
  std::uint64_t offset = 0;

  template <class Self>
  static auto fields(Self& self) {
    return std::tie(self.lease, self.file, self.offset);
  }
};

/// And the piece, or why there is none.
struct training_piece {
  static constexpr std::uint16_t kind = 46;
  training_lease lease;
  std::string file;
  std::uint64_t offset = 0;
  std::string error;
  shared_bytes attachment;

  template <class Self>
  static auto fields(Self& self) {
    return std::tie(self.lease, self.file, self.offset, self.error);
  }
};

// --- clients ---

/// Client to head: answer this. `id` is the client's own and names the request in every answer.
struct client_request {
  static constexpr std::uint16_t kind = 48;
  std::uint64_t id = 0;
  std::string text;              ///< a prompt; or else
  std::vector<token_id> tokens;  ///< the same as tokens; or else
  std::string messages;          ///< a chat: a JSON list of {role, content}, rendered by the model's template
  std::string adapter;           ///< name, name@version, or empty for the bare base
  std::int32_t answers = 1;
  bool batch = false;  ///< priority: after everything interactive
  sampling_params sampling;
  std::uint64_t skip_tokens = 0;  ///< of each answer, which the client has from before

  template <class Self>
  static auto fields(Self& self) {
    return std::tie(self.id, self.text, self.tokens, self.messages, self.adapter, self.answers, self.batch,
                    self.sampling, self.skip_tokens);
  }
};

/// Client to head: stop working on it.
struct client_cancel {
  static constexpr std::uint16_t kind = 49;
  std::uint64_t id = 0;

  template <class Self>
  static auto fields(Self& self) {
    return std::tie(self.id);
  }
};

/// Head to client: more of one answer.
struct client_text {
  static constexpr std::uint16_t kind = 50;
  std::uint64_t id = 0;
  std::int32_t index = 0;  ///< which answer
  std::string text;        ///< whole characters, certain
  std::vector<token_id> tokens;
  std::vector<sampled_token> details;  ///< where logprobs were asked for
  std::string finish;                  ///< "stop", "length" or, before the end, empty
  std::int64_t prompt_tokens = 0;      ///< with the end
  std::string adapter;                 ///< with the first part and the end: the version that answers, "pricing@3"

  template <class Self>
  static auto fields(Self& self) {
    return std::tie(self.id, self.index, self.text, self.tokens, self.details, self.finish, self.prompt_tokens,
                    self.adapter);
  }
};

/// Head to client: there will be no (more) answer, and why.
struct client_refused {
  static constexpr std::uint16_t kind = 51;
  std::uint64_t id = 0;
  std::string error;
  bool bad_input = false;                  ///< the request itself; else the cluster's state
  std::uint64_t retry_after_ms = 0;        ///< 0: trying again is of no use
  std::string field_name = {}, code = {};  ///< of a field_error

  template <class Self>
  static auto fields(Self& self) {
    return std::tie(self.id, self.error, self.bad_input, self.retry_after_ms, self.field_name, self.code);
  }
};

/// Client to head: anything that is asked once and answered once ("status", "adapters.load", "job.seal" …), its
/// arguments as a JSON object. The frame's correlation comes back with the answer.
struct client_command {
  static constexpr std::uint16_t kind = 52;
  std::string name, arguments;

  template <class Self>
  static auto fields(Self& self) {
    return std::tie(self.name, self.arguments);
  }
};

enum class command_fault : std::uint8_t {
  none,
  bad_input,  ///< the command itself
  unknown,    ///< it names what is not there
  failed      ///< the cluster's state, or a disk
};
constexpr command_fault last_enumerator(command_fault) {
  return command_fault::failed;
}

/// Head to client: what the command returned, as JSON, or why it did not.
struct command_answer {
  static constexpr std::uint16_t kind = 53;
  std::string result = {}, error = {};
  command_fault fault = command_fault::none;

  bool is_refused() const { return fault != command_fault::none; }

  template <class Self>
  static auto fields(Self& self) {
    return std::tie(self.result, self.error, self.fault);
  }
};

}  // namespace troupe
