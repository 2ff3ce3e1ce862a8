#include "actors/workers/step_frames.hpp"

#include <algorithm>

#include "model/engine/stages/step_order.hpp"

namespace troupe {
namespace {

/// An order names all blocks of all sequences. Of what answers bring along it has as much as is sent at once, or one
/// text.
std::uint64_t order_bytes(const step_sizes& sizes) {
  constexpr std::uint64_t sequence_bytes = 256;
  const std::uint64_t blocks = sizes.context / block_tokens + 1;
  return opened_bytes_at_once + (sizes.rows + sizes.context) * sizeof(token_id) +
         sizes.sequences * (blocks * sizeof(block_id) + sequence_bytes);
}

/// An outcome has pooled rows, and the logprobs of every chosen token and of prompts' tokens: of two long prompts, one
/// of each priority, and of short ones that earlier steps have begun.
std::uint64_t outcome_bytes(const step_sizes& sizes) {
  constexpr std::uint64_t padding = 64, figures_bytes = 840;  // for a token with 100 alternatives
  return sizes.sequences * (sizes.hidden * sizeof(float) + padding) +
         (3 * sizes.rows + 2 * sizes.context) * figures_bytes;
}

/// What answers bring along is sent in parts before the order that opens them, and all of it may wait at the same time.
std::uint64_t openings_bytes(const step_sizes& sizes) {
  return sizes.sequences * (most_constraint_bytes + most_list_bytes + sizes.context * sizeof(token_id));
}

}  // namespace

void make_room_for_steps(const step_sizes& sizes, bus::options& options) {
  constexpr std::uint64_t padding = 64;
  const std::uint64_t activations = sizes.rows * (sizes.hidden + padding) * sizeof(float);
  const std::uint64_t body = std::max(order_bytes(sizes), outcome_bytes(sizes));
  options.limits.attachment_bytes = std::max(options.limits.attachment_bytes, activations);
  options.limits.body_bytes = std::max(options.limits.body_bytes, body);
  const std::uint64_t waiting = (sizes.steps + 1) * (activations + body) + openings_bytes(sizes);
  options.queue_bytes = std::max(options.queue_bytes, waiting);
}

bool have_room_for(const step_sizes& others, const step_sizes& links) {
  bus::options needed, there;
  make_room_for_steps(others, needed);
  make_room_for_steps(links, there);
  return needed.limits.attachment_bytes <= there.limits.attachment_bytes &&
         needed.limits.body_bytes <= there.limits.body_bytes;
}

}  // namespace troupe
