#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/fields.hpp"
#include "model/engine/sampling/candidates.hpp"
#include "model/engine/sampling/sampling_history.hpp"
#include "model/engine/sampling/sampling_params.hpp"
#include "model/engine/sampling/vocabulary_scan.hpp"
#include "model/ops/kernels.hpp"

namespace troupe {

struct token_logprob {
  token_id token = 0;
  float logprob = 0.0f;  ///< -inf for a token of no probability

  auto fields() { return std::tie(token, logprob); }
};

struct sampled_token {
  token_id token = 0;
  std::optional<float> logprob = {};             ///< where params.logprobs asks
  std::vector<token_logprob> alternatives = {};  ///< the params.logprobs most likely, the chosen one among them or not
  std::int32_t rank = 0;                         ///< of a token that was given, not chosen: 1 for the most likely

  auto fields() { return std::tie(token, logprob, alternatives, rank); }
};

/// Chooses a sequence's next token. The order of steps is vLLM's: log-probabilities of the logits as they came; bias
/// and penalties; tokens that are not allowed are ruled out; the largest logit if greedy, equal ones by id; else
/// temperature, min_p, top_k, top_p and a draw among what is left, the most likely first, by the random bits of (seed,
/// position). The result depends on the arguments alone, on every instruction set; the object is scratch memory and
/// belongs to one thread.
class sampler {
 public:
  explicit sampler(const kernel_table& kernels) : kernels_(&kernels) {}

  /// `logits` [vocab], at least one and at most 2^23; `position`: of the token that is chosen, in its sequence.
  /// Parameters must have passed check(). `allowed`: a bit for each token, one set at least; empty: all are. `barred`:
  /// not chosen unless nothing else is left.
  sampled_token sample(std::span<const float> logits, const sampling_params& params, const sampling_history& history,
                       std::uint64_t position, std::span<const std::uint64_t> allowed = {},
                       std::span<const token_id> barred = {});

  /// How likely `token` was, which was not chosen here but given, and what was most likely.
  sampled_token score(std::span<const float> logits, token_id token, std::int32_t alternatives);

 private:
  std::span<const float> changed(std::span<const float> logits, const sampling_params& params,
                                 const sampling_history& history, std::span<const std::uint64_t> allowed,
                                 std::span<const token_id> barred);
  token_id draw(std::span<const float> logits, const sampling_params& params, std::uint64_t position);
  void describe(std::span<const float> logits, std::int32_t alternatives, sampled_token& chosen);

  const kernel_table* kernels_;
  detail::block_maxima maxima_;
  detail::all_candidates all_;
  std::vector<detail::ranked_token> first_;
  std::vector<float> changed_;
};

}  // namespace troupe
