// For the last stage: how likely a prompt's own tokens were, for requests that ask (`echo` with `logprobs`).
#pragma once
#include <unordered_map>
#include <vector>

#include "base/to_size.hpp"
#include "model/engine/sampling/sampler.hpp"
#include "model/engine/stages/step_order.hpp"

namespace troupe {

/// A row's logits say how likely the token behind it was, so each token is scored by the row before it, however the
/// prompt was cut into steps.
class prompt_scorer {
 public:
  prompt_scorer(const kernel_table& kernels, std::int64_t vocab_size)
      : vocab_size_(to_size(vocab_size)), sampler_(kernels) {}

  void open(const answer_opening& opening);
  void close(sequence_id answer) { open_.erase(answer); }

  /// The rows of the batch whose logits are needed, one after another.
  void list_rows(const step_plan& plan, std::vector<int>& rows);
  /// Of the next `count` of the listed rows: [count, stride].
  void take(int count, const float* logits, std::int64_t stride);
  /// Prompts that are complete. Their answers must be in the outcome.
  void finish(const step_plan& plan, step_outcome& outcome);

 private:
  struct open_prompt {
    std::int32_t alternatives = 0;
    std::vector<token_id> tokens;
    std::vector<sampled_token> scored;
  };
  struct next_token {
    open_prompt* prompt;
    std::size_t index;
  };
  static void tell(open_prompt& prompt, sequence_id sequence, step_outcome& outcome);

  std::size_t vocab_size_;
  sampler sampler_;
  std::unordered_map<sequence_id, open_prompt> open_;
  std::vector<next_token> listed_;
  std::size_t taken_ = 0;  ///< of those listed
};

}  // namespace troupe
