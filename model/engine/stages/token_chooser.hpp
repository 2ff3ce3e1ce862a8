// The last stage's part of a step: logits become tokens.
#pragma once
#include <memory>
#include <span>
#include <unordered_map>

#include "model/engine/sampling/answer_form.hpp"
#include "model/engine/sampling/sampler.hpp"
#include "model/engine/stages/step_order.hpp"

namespace troupe {

/// Knows every open answer's sampling and text. What it chooses depends on those and the logits alone.
class token_chooser {
 public:
  /// `lookup_tokens`: guesses by prompt lookup for each next step; 0: none. `tokens`: for answers under a constraint;
  /// without them these end at once.
  token_chooser(const kernel_table& kernels, std::int64_t vocab_size, int lookup_tokens, token_tree_source tokens);
  ~token_chooser();

  void open(const answer_opening& opening);
  void close(sequence_id answer);
  void close_all();

  /// `logits`: [the plan's logit rows, stride]. Rows whose answers are not open are passed over.
  void choose(const step_plan& plan, const float* logits, std::int64_t stride, step_outcome& outcome);

 private:
  struct answer;
  struct row_logits {
    const float* first;
    std::int64_t stride;
  };
  void give_form(answer& to, const answer_opening& opening);
  void choose_for(const step_plan& plan, const planned_row& row, answer& to, row_logits logits, step_outcome& outcome);
  void guess(const answer& of, step_outcome& outcome) const;
  void keep_details(sampled_token chosen, step_outcome& outcome) const;

  std::size_t vocab_size_;
  std::size_t lookup_tokens_;
  sampler sampler_;
  token_tree_source tokens_;
  std::unique_ptr<constraint_store> constraints_;  ///< from the first constraint on
  std::unordered_map<sequence_id, std::unique_ptr<answer>> answers_;
};

}  // namespace troupe
