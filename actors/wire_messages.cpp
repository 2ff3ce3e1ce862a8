// The only place where messages become bytes and bytes become messages.
#include "actors/wire.hpp"
#include "transport/zmq/codec.hpp"

namespace troupe {
namespace {

template <class M>
concept has_attachment = requires(M m) {
  m.attachment;
};

}  // namespace

template <message M>
frame to_frame(M message) {
  frame to;
  to.kind = M::kind;
  to.body = encode(message);
  if constexpr (has_attachment<M>) to.attachment = std::move(message.attachment);
  return to;
}

template <message M>
std::optional<M> from_frame(frame&& from) {
  auto message = decode<M>(from.body);
  if (!message) return {};
  if constexpr (has_attachment<M>)
    message.value().attachment = std::move(from.attachment);
  else if (from.attachment.size() > 0)
    return {};
  return std::move(message.value());
}

#define TROUPE_ON_THE_WIRE(M)    \
  template frame to_frame<M>(M); \
  template std::optional<M> from_frame<M>(frame &&)

TROUPE_ON_THE_WIRE(join_cluster);
TROUPE_ON_THE_WIRE(join_answer);
TROUPE_ON_THE_WIRE(heartbeat);
TROUPE_ON_THE_WIRE(heartbeat_answer);
TROUPE_ON_THE_WIRE(leave_cluster);
TROUPE_ON_THE_WIRE(end_node);
TROUPE_ON_THE_WIRE(start_stage);
TROUPE_ON_THE_WIRE(stage_started);
TROUPE_ON_THE_WIRE(run_step);
TROUPE_ON_THE_WIRE(activations);
TROUPE_ON_THE_WIRE(step_ending);
TROUPE_ON_THE_WIRE(step_done);
TROUPE_ON_THE_WIRE(stage_failed);
TROUPE_ON_THE_WIRE(load_adapter);
TROUPE_ON_THE_WIRE(adapter_loaded);
TROUPE_ON_THE_WIRE(drop_adapter);
TROUPE_ON_THE_WIRE(want_piece);
TROUPE_ON_THE_WIRE(adapter_piece);
TROUPE_ON_THE_WIRE(prepare_adapter);
TROUPE_ON_THE_WIRE(adapter_prepared);
TROUPE_ON_THE_WIRE(train_job);
TROUPE_ON_THE_WIRE(stop_training);
TROUPE_ON_THE_WIRE(set_training_share);
TROUPE_ON_THE_WIRE(training_progress);
TROUPE_ON_THE_WIRE(training_ended);
TROUPE_ON_THE_WIRE(want_training_piece);
TROUPE_ON_THE_WIRE(training_piece);
TROUPE_ON_THE_WIRE(keep_jobs);
TROUPE_ON_THE_WIRE(client_request);
TROUPE_ON_THE_WIRE(client_cancel);
TROUPE_ON_THE_WIRE(client_text);
TROUPE_ON_THE_WIRE(client_refused);
TROUPE_ON_THE_WIRE(client_command);
TROUPE_ON_THE_WIRE(command_answer);

#undef TROUPE_ON_THE_WIRE

}  // namespace troupe
