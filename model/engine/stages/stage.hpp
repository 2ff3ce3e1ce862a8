// A run of consecutive layers, carried through the orders of a replica's scheduler.
//
// Goals: it owns storage and nothing else, so that it can be lost and made again at any time. What is in which block,
// who runs and what is chosen when are the scheduler's business. A pipeline of stages computes what one stage computes,
// bit for bit.
#pragma once
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "model/arch/decoder.hpp"
#include "model/engine/stages/hidden_pooler.hpp"
#include "model/engine/stages/kept_states.hpp"
#include "model/engine/stages/prompt_scorer.hpp"
#include "model/engine/stages/step_order.hpp"
#include "model/engine/stages/token_chooser.hpp"

namespace troupe {

class stage {
 public:
  /// `shard`: its layers and storage, as for a decoder. `lookup_tokens`: guesses by prompt lookup for each step; 0:
  /// none, nor for a model that keeps states, out of which they could not be taken back. `tokens`: of the model's
  /// tokenizer, for answers under a constraint.
  stage(std::shared_ptr<const loaded_model> model, const decoder::options& shard, int lookup_tokens,
        const compute& with, token_tree_source tokens = {});

  bool is_first() const { return first_layer_ == 0; }
  bool is_last() const { return last_; }
  /// Whether it chooses the tokens: the first rank of the last stage does.
  bool chooses() const { return last_ && shard_->is_first_rank(); }
  /// Whether it needs not be told which tokens it chose: it can be given its next order before they are known.
  bool goes_ahead() const { return is_first() && last_ && shard_->can_share_tokens() && !chooser_.guesses(); }
  std::int64_t hidden_stride() const { return shard_->hidden_stride(); }
  std::string remark() const { return shard_->remark(); }  ///< for the operator; empty: nothing

  void add_adapter(adapter_version version, std::shared_ptr<const lora_adapter> adapter);
  void remove_adapter(adapter_version version);
  bool has_adapter(adapter_version version) const { return adapters_.contains(version); }

  // One step: begin; the first stage embeds; run; the last stage finishes. The order must stay until then.
  // The ranks of a stage make the same calls; only the one that chooses has an outcome.
  /// Returns the rows of the step. Throws input_error where the order is none for this stage: it reaches beyond it, or
  /// names an adapter that is not there.
  int begin(const step_order& order);
  void embed(float* hidden);  ///< [rows, hidden_stride()]
  void run(float* hidden);
  const step_outcome& finish(const float* hidden);

 private:
  struct block_table {
    std::vector<std::int32_t> blocks;
    std::uint64_t begun = 0;          ///< the last step that had the sequence
    token_id chosen = chosen_before;  ///< by the last step that chose one
  };

  void take_answers(const step_order& order);
  void take_shares(const step_plan& plan);
  void take_tokens(const step_plan& plan);
  void note_chosen();
  void choose(const float* hidden);
  void score(const float* hidden);
  void pool(const float* hidden);
  const lora_adapter* adapter_of(const planned_share& share) const;

  std::shared_ptr<const loaded_model> model_;
  std::int64_t first_layer_;
  bool last_;
  std::unique_ptr<decoder> shard_;
  order_limits limits_;
  token_chooser chooser_;
  hidden_pooler pooler_;
  prompt_scorer scorer_;
  std::unordered_map<adapter_version, std::shared_ptr<const lora_adapter>> adapters_;
  std::unordered_map<sequence_id, block_table> tables_;
  kept_states states_;
  std::uint64_t begun_ = 0;  ///< steps

  const step_plan* plan_ = nullptr;
  std::vector<token_id> tokens_;  ///< the plan's; now all of them known
  std::vector<pass_sequence> sequences_;
  std::vector<int> logit_rows_, largest_rows_, scored_rows_, pooled_rows_;
  std::vector<token_id> largest_;
  step_outcome outcome_;
};

}  // namespace troupe
