#pragma once
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "model/engine/sampling/sampling_params.hpp"

namespace troupe {

/// What penalties need to know of one sequence: how often each of its distinct tokens was generated, and which of them
/// the prompt or the answer holds. Empty, and free of cost, where the parameters use no penalty. Owned by the sequence.
class sampling_history {
 public:
  sampling_history() = default;
  /// `generated`: of a sequence that is resumed.
  sampling_history(const sampling_params& params, std::span<const token_id> prompt,
                   std::span<const token_id> generated = {});

  /// The token that was generated.
  void add(token_id token);
  /// Bias first, then repetition, frequency and presence, as vLLM does. Costs O(distinct tokens).
  void apply(const sampling_params& params, std::span<float> logits) const;

 private:
  struct entry {
    token_id token;
    std::uint32_t generated;
  };
  entry& entry_of(token_id token);

  bool kept_ = false;
  std::vector<entry> entries_;
  std::unordered_map<token_id, std::size_t> places_;
};

}  // namespace troupe
