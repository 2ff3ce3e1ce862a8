#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "base/fields.hpp"
#include "base/to_size.hpp"
#include "model/engine/scheduling/block_pool.hpp"
#include "model/engine/scheduling/ids.hpp"
#include "model/tokenizer/tokenizer.hpp"

namespace troupe {

/// In a plan, instead of a token: the one that the step before chose for this sequence, which only the stage knows yet.
constexpr token_id chosen_before = -1;

/// One sequence's share of a step. Ranges are in the plan's lists.
struct planned_share {
  sequence_id sequence;
  adapter_version adapter;
  std::int32_t state = 0;        ///< the place of its own, if the model keeps states
  std::int64_t position = 0;     ///< of the first token
  std::int32_t first_token = 0;  ///< also the first row of the batch
  std::int32_t tokens = 0;       ///< to feed, the proposals among them
  std::int32_t proposals = 0;    ///< the last so many tokens are guesses, to be verified
  std::int32_t logit_rows = 0;   ///< the last so many tokens need logits: 0, or 1 + proposals
  bool complete = false;         ///< afterwards every known token is computed: there is an outcome to commit

  /// The block table is the first `kept_blocks` of what the last step with this sequence left, then these.
  std::int32_t kept_blocks = 0;
  std::int32_t first_block = 0;
  std::int32_t blocks = 0;

  /// The sequences whose next token comes from this share's logits: itself, or all answers of a prompt.
  std::int32_t first_answer = 0;
  std::int32_t answers = 0;

  auto fields() {
    return std::tie(sequence, adapter, state, position, first_token, tokens, proposals, logit_rows, complete,
                    kept_blocks, first_block, blocks, first_answer, answers);
  }
};

/// To be carried out before the rows of the step that it comes with: the state in one place put into another as well,
/// where `sequence` goes on from it.
struct state_copy {
  std::int32_t from = 0, to = 0;
  sequence_id sequence;

  auto fields() { return std::tie(from, to, sequence); }
};

/// What every stage does in one step: forget, copy blocks and states in the order given, then run the rows. Steps must
/// be carried out in the order of their ids. The caller keeps plans and hands them in again, so that their memory is
/// used again.
struct step_plan {
  step_id id;
  std::vector<planned_share> shares;  ///< equal adapters are neighbours, shares without one come first
  std::vector<token_id> tokens;       ///< [sum of the shares' tokens]
  std::vector<block_id> blocks;
  std::vector<block_copy> copies;
  std::vector<state_copy> state_copies;
  std::vector<sequence_id> answers;
  std::vector<sequence_id> forgotten;  ///< ended since the last step: their block tables can go

  std::span<const token_id> tokens_of(const planned_share& share) const {
    return std::span(tokens).subspan(to_size(share.first_token), to_size(share.tokens));
  }
  std::span<const block_id> blocks_of(const planned_share& share) const {
    return std::span(blocks).subspan(to_size(share.first_block), to_size(share.blocks));
  }
  std::span<const sequence_id> answers_of(const planned_share& share) const {
    return std::span(answers).subspan(to_size(share.first_answer), to_size(share.answers));
  }
  void clear() {
    id = {};
    shares.clear();
    tokens.clear();
    blocks.clear();
    copies.clear();
    state_copies.clear();
    answers.clear();
    forgotten.clear();
  }

  auto fields() { return std::tie(id, shares, tokens, blocks, copies, state_copies, answers, forgotten); }
};

/// What became of one answer of a complete share.
struct sequence_outcome {
  sequence_id sequence;
  std::span<const token_id> tokens;     ///< new ones: first the proposals that held, then the one that was chosen
  bool finished = false;                ///< the sequence ends here; then tokens may be empty
  std::span<const token_id> proposals;  ///< guesses at the tokens that follow, for the next step
  bool cut = false;                     ///< it ends as if it were too long
};

}  // namespace troupe
