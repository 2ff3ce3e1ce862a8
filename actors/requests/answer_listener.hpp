// What whoever asks the gateway gets: answers part by part, or a refusal.
#pragma once
#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/strong_id.hpp"
#include "model/engine/sampling/sampler.hpp"

namespace troupe {

/// Unique within the life of a head.
using request_id = strong_id<struct request_tag, std::uint64_t>;

/// Gives out request ids. Thread-safe.
class request_numbers {
 public:
  request_id next() { return request_id(last_.fetch_add(1, std::memory_order_relaxed) + 1); }

 private:
  std::atomic<std::uint64_t> last_{0};
};

/// How long an answer waited until it ran, and from there to its first token; and how many tokens of the prompt came
/// from the prefix cache.
struct answer_timing {
  duration queued{}, prefill{};
  std::int64_t cached_tokens = 0;
};

/// What of its request ended an answer; neither, if it was the model itself, or a limit.
struct stop_reason {
  std::optional<std::string> text = {};  ///< one of the stop strings
  std::optional<token_id> token = {};    ///< one of the stop tokens, and none of the model's own end tokens
};

/// How an answer ended.
struct answer_end {
  std::string finish = {};                  ///< "stop" or "length"
  std::int64_t prompt_tokens = 0;           ///< of its prompt
  std::string adapter = {};                 ///< the version that answered, like "pricing@3"; empty: the bare base
  std::optional<sampled_token> token = {};  ///< that ended it, if one did; not in the answer's text
  stop_reason stopped_by = {};
};

/// What one step brought for one answer, as text.
struct answer_part {
  std::int32_t index = 0;  ///< which answer
  std::string text = {};   ///< only whole characters that cannot change any more
  std::vector<token_id> tokens = {};
  std::vector<sampled_token> details = {};   ///< parallel to tokens, if logprobs were asked for
  std::optional<answer_end> end = {};        ///< with the last part
  std::vector<float> hidden = {};            ///< with the end, if hidden states were asked for
  std::vector<sampled_token> scored = {};    ///< the prompt's tokens, with the first part, if asked for
  std::optional<answer_timing> timing = {};  ///< with the first part, if known
  std::string adapter = {};                  ///< with the first part: the version that answers; empty: the bare base

  /// Of the tokens that were computed for it: the one that ended the answer is one.
  std::size_t token_count() const { return tokens.size() + (end && end->token ? 1 : 0); }
};

enum class refusal_cause : std::uint8_t {
  bad_input,   ///< the request is wrong: trying again is of no use
  full,        ///< too many requests are being served
  unavailable  ///< because of the cluster's state
};

/// Router or scheduler to gateway, and gateway to listener: no (more) answers will come.
struct request_refused {
  request_id request = {};
  std::string error = {};
  refusal_cause cause = refusal_cause::unavailable;
  duration retry_after{};           ///< 0: nobody knows when trying again helps, if it does
  bool is_unknown_adapter = false;  ///< no adapter has the name that it asked for
  std::string field = {};           ///< of the request over HTTP, that is at fault; empty where none is alone
};

/// Gets the answers of a request. Called on the gateway's thread, so it must be quick and must not throw. The last part
/// of each answer has its end; after the last end, or a refusal, nothing more comes.
class answer_listener {
 public:
  virtual ~answer_listener() = default;
  virtual void on_part(answer_part part) = 0;
  virtual void on_refused(const request_refused& refused) = 0;
};

}  // namespace troupe
