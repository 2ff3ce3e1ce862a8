// What is asked of a replica, and what it says in answer, step by step. Whoever only asks and listens need not know how
// a replica decides (replica_scheduler.hpp).
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "model/engine/sampling/sampler.hpp"
#include "model/engine/sampling/sampling_params.hpp"
#include "model/engine/scheduling/sequence_request.hpp"
#include "model/tokenizer/tokenizer.hpp"

namespace troupe {

struct engine_request {
  sequence_request sequence;
  sampling_params sampling;
  std::vector<token_id> end_tokens;
  std::size_t resumed = 0;  ///< the last so many tokens of the prompt are of the answer already

  /// Of the prompt alone.
  std::int64_t prompt_tokens() const { return static_cast<std::int64_t>(sequence.prompt.size() - resumed); }
  /// For answers that have `length` tokens, their prompt included.
  sampling_params sampling_from(std::size_t length) const;
};

/// A request in the form in which it must be submitted elsewhere to go on. `first`: the id of its first answer.
struct given_up_request {
  sequence_id first;
  engine_request rest;
};
using given_up_requests = std::vector<given_up_request>;

/// What a step read besides an answer's tokens, if the request asked for it. It is told before the tokens.
struct engine_reading {
  sequence_id sequence;
  std::span<const float> hidden;          ///< pooled
  std::span<const sampled_token> scored;  ///< the prompt's tokens; nothing is known of the first one's probability
  const sampled_token* ending;            ///< the token that ended the answer, else nullptr
};

/// One token of an answer, in order.
struct engine_token {
  sequence_id sequence;
  token_id token;
  const sampled_token* details;  ///< where logprobs were asked for, else nullptr
};

}  // namespace troupe
