// For the last stage: logits become tokens.
#pragma once
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "model/engine/sampling/answer_form.hpp"
#include "model/engine/sampling/sampler.hpp"
#include "model/engine/stages/step_order.hpp"
#include "model/ops/compute.hpp"

namespace troupe {

/// What was made of the rows that a chooser listed.
struct chooser_readings {
  const float* logits;  ///< [rows, stride]
  std::int64_t stride;
  const token_id* largest;  ///< [largest_of]
};

/// Knows every open answer's sampling and text. What it chooses depends on those and the logits alone.
class token_chooser {
 public:
  /// `lookup_tokens`: guesses by prompt lookup for each next step; 0: none. `tokens`: for answers under a constraint;
  /// without them these end at once.
  token_chooser(const compute& with, std::int64_t vocab_size, int lookup_tokens, token_tree_source tokens);
  ~token_chooser();

  bool guesses() const { return lookup_tokens_ > 0; }

  void open(const answer_opening& opening);
  void close(sequence_id answer);

  /// The rows of the batch whose logits are needed. Where it `finds_largest`, those whose largest one is enough go to
  /// the other list. Rows whose answers are not open are passed over when it comes to choosing.
  void list_rows(const step_plan& plan, bool finds_largest, std::vector<int>& rows, std::vector<int>& largest_of);
  /// Of the rows that were listed last. An answer that has ended gets no more tokens.
  void choose(const step_plan& plan, const chooser_readings& readings, step_outcome& outcome);

 private:
  struct open_answer;
  struct answer_turn;
  std::unique_ptr<open_answer> opened(const answer_opening& opening, std::uint32_t index);
  void constrain(open_answer& answer);
  bool list_turns(const step_plan& plan, const planned_share& share);
  void take_turn(const step_plan& plan, const chooser_readings& readings, answer_turn& turn,
                 sampler& thread_sampler) const;
  std::optional<sampled_token> choose_token(const chooser_readings& readings, answer_turn& turn, int logit_row,
                                            sampler& thread_sampler) const;
  void report(answer_turn& turn, step_outcome& outcome) const;

  thread_pool& pool_;
  std::size_t vocab_size_;
  std::size_t lookup_tokens_;
  std::vector<sampler> samplers_;  ///< one for each thread
  token_tree_source tokens_;
  std::unique_ptr<constraint_store> constraints_;  ///< from the first constraint on
  std::unordered_map<sequence_id, std::unique_ptr<open_answer>> answers_;
  std::vector<answer_turn> turns_;        ///< of the rows that were listed last
  std::vector<answer_turn*> shared_out_;  ///< over threads
  std::uint64_t lists_ = 0;
};

}  // namespace troupe
