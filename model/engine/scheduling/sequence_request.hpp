#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "model/engine/scheduling/ids.hpp"
#include "model/tokenizer/tokenizer.hpp"

namespace troupe {

constexpr std::int64_t most_weight = 1000;  ///< of a tenant

/// Why stages forget what they stored.
enum class life_end : std::uint8_t {
  loss,       ///< perhaps a step's own doing
  lost_link,  ///< the same, and it is known that two workers, or the head and one, could not reach each other
  planned     ///< nobody's: a worker leaves, or is sent away
};

/// How often a replica's stages lost what they stored while this sequence was in the step: perhaps it is the cause.
struct lost_steps {
  std::int32_t lives = 0;  ///< one after the other, without getting any further between them
  std::size_t at = 0;      ///< where such a step began; what lies before was computed without harm
  bool by_link = false;    ///< one of these lives ended by a lost link, which need not be the sequence's doing
};

/// What the batch scheduler must know of a request. How tokens are chosen is no part of it.
struct sequence_request {
  std::vector<token_id> prompt;
  std::int64_t max_tokens = 16;  ///< of each answer; 0: the prompt is only computed, for its hidden states
  std::int32_t answers = 1;      ///< of the one prompt, which is computed once
  request_priority priority = request_priority::interactive;
  tenant_id tenant;
  std::uint64_t weight = 1;  ///< of the tenant: who has twice the weight is served twice as much
  adapter_version adapter = no_adapter;
  std::uint64_t cache_salt = 0;  ///< only sequences with the same one find each other's prompts in the prefix cache
  /// Something is read from every row of the prompt (a mean of hidden states, logprobs of the prompt): no row of it is
  /// taken from the prefix cache. After a preemption within the prompt the rows come again from position 0.
  bool every_prompt_row = false;
  bool was_accepted = false;  ///< by a scheduler that has given it up: it is not refused for want of room
  lost_steps lost = {};       ///< there
};

/// The ids of a request's answers follow each other.
inline sequence_id answer_behind(sequence_id first, std::int32_t count) {
  return sequence_id(first.value + static_cast<std::uint64_t>(count));
}

struct accepted_request {
  sequence_id first;
  std::int32_t answers = 1;
};

enum class refusal : std::uint8_t {
  empty_prompt,
  prompt_too_long,   ///< it leaves no room in the context
  bad_limit,         ///< a negative number of tokens
  bad_answers,       ///< none, more than fit into one step, or several of a prompt that is only computed
  budget_too_small,  ///< all blocks together could not hold the sequence at its longest
  unknown_adapter,
  queue_full
};
std::string_view name_of(refusal reason);

struct refused_request {
  refusal reason;
  duration retry_after{};  ///< a guess at when the queue will have room; 0 where trying again is of no use
};

enum class end_reason : std::uint8_t {
  stop,   ///< the caller said so
  length  ///< max_tokens or the context is reached, or there was nothing to generate
};
std::string_view name_of(end_reason reason);

struct ended_sequence {
  sequence_id sequence;
  end_reason reason;
};

}  // namespace troupe
