// For the last stage: hidden states of prompts, pooled, instead of answers to them.
#pragma once
#include <unordered_map>
#include <vector>

#include "base/to_size.hpp"
#include "model/engine/stages/step_order.hpp"

namespace troupe {

/// Adds up in the order of positions and in double precision, so the result depends on the prompt alone, however it was
/// cut into steps.
class hidden_pooler {
 public:
  explicit hidden_pooler(std::int64_t hidden) : hidden_(to_size(hidden)) {}

  void open(const answer_opening& opening);
  void close(sequence_id answer) { open_.erase(answer); }

  /// The rows of the batch whose hidden states are needed, one after another.
  void list_rows(const step_plan& plan, std::vector<int>& rows) const;
  /// `normed`: [listed rows, stride]. The answers of complete shares must be in the outcome.
  void take(const step_plan& plan, const float* normed, std::int64_t stride, step_outcome& outcome);

 private:
  struct open_prompt {
    hidden_pooling pooling = hidden_pooling::none;
    std::vector<double> sum;  // [hidden]
    std::int64_t rows = 0;
  };
  static int needed_rows(const open_prompt& prompt, const planned_share& share);
  void add(open_prompt& prompt, const planned_share& share, const float* normed, std::int64_t stride) const;
  void finish(const open_prompt& prompt, sequence_id sequence, step_outcome& outcome) const;

  std::size_t hidden_;
  std::unordered_map<sequence_id, open_prompt> open_;
};

}  // namespace troupe
