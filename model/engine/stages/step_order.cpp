#include "model/engine/stages/step_order.hpp"

#include <algorithm>
#include <iterator>

#include "base/error.hpp"

namespace troupe {
namespace {

bool is_block(block_id block, const order_limits& limits) {
  return block.value >= 0 && block.value < limits.blocks;
}

bool is_state(std::int32_t state, const order_limits& limits) {
  return state >= 0 && state < limits.states;
}

bool is_sound(const planned_share& share, const step_plan& plan, const order_limits& limits) {
  return share.tokens > 0 && lies_in(share.first_token, share.tokens, plan.tokens.size()) &&
         lies_in(share.first_block, share.blocks, plan.blocks.size()) &&
         lies_in(share.first_answer, share.answers, plan.answers.size()) && share.kept_blocks >= 0 &&
         share.logit_rows >= 0 && share.logit_rows <= share.tokens && is_state(share.state, limits) &&
         share.position >= 0 && share.position <= limits.context - share.tokens;
}

/// About what it takes on the wire.
std::size_t bytes_of(const answer_opening& opening) {
  const sampling_params& sampling = opening.sampling;
  std::size_t bytes = sizeof opening + sampling.constraint.bytes();
  for (const std::string& stop : sampling.stop) bytes += sizeof stop + stop.size();
  return bytes + opening.answers.size() * sizeof(answer_seed) + sampling.logit_bias.size() * sizeof(token_bias) +
         (opening.text.size() + opening.end_tokens.size() + sampling.stop_tokens.size()) * sizeof(token_id);
}

}  // namespace

std::vector<answer_opening> take_excess(std::vector<answer_opening>& from, std::size_t bytes) {
  std::size_t taken = 0;
  const auto is_beyond = [&](const answer_opening& each) { return (taken += bytes_of(each)) > bytes; };
  const auto beyond = std::find_if(from.begin(), from.end(), is_beyond);
  if (beyond == from.end()) return {};
  const auto end = std::max(beyond, from.begin() + 1);
  std::vector<answer_opening> first(std::make_move_iterator(from.begin()), std::make_move_iterator(end));
  from.erase(from.begin(), end);
  return first;
}

void check(const step_order& order, const order_limits& limits) {
  const step_plan& plan = order.plan;
  const auto broken = [&](std::string_view fault) {
    refuse("step {} is no step of this stage: {}", plan.id.value, fault);
  };
  if (static_cast<std::int64_t>(plan.tokens.size()) > limits.max_rows) broken("too many tokens");
  if (static_cast<std::int64_t>(plan.shares.size()) > limits.max_sequences) broken("too many sequences");
  std::int64_t next = 0;
  for (const planned_share& share : plan.shares) {
    if (!is_sound(share, plan, limits) || share.first_token != next) broken("a share is out of range");
    next += share.tokens;
  }
  if (next != static_cast<std::int64_t>(plan.tokens.size())) broken("tokens of no share");
  const auto is_known = [&](token_id token) { return is_token(token, limits.vocab_size); };
  for (const planned_share& share : plan.shares) {
    const auto tokens = plan.tokens_of(share);
    const bool is_chosen_before = share.tokens == 1 && tokens.front() == chosen_before;
    if (!is_chosen_before && !std::all_of(tokens.begin(), tokens.end(), is_known))
      broken("a token that the model does not have");
  }
  for (const block_id block : plan.blocks)
    if (!is_block(block, limits)) broken("a block that is not there");
  for (const block_copy& copy : plan.copies)
    if (!is_block(copy.from, limits) || !is_block(copy.to, limits)) broken("a copy of a block that is not there");
  for (const state_copy& copy : plan.state_copies)
    if (!is_state(copy.from, limits) || !is_state(copy.to, limits)) broken("a copy of a state that is not there");
  for (const answer_opening& opening : order.opened) {
    check(opening.sampling, limits.vocab_size);
    if (opening.prompt_tokens == 0 || !lies_in(0, opening.prompt_tokens, opening.text.size()))
      broken("an answer without its prompt");
    if (!std::all_of(opening.text.begin(), opening.text.end(), is_known))
      broken("an answer to a token that the model does not have");
  }
}

}  // namespace troupe
