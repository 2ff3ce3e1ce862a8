#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/fields.hpp"
#include "model/grammar/constraint.hpp"
#include "model/tokenizer/tokenizer.hpp"

namespace troupe {

struct token_bias {
  token_id token = 0;
  double bias = 0.0;

  auto fields() { return std::tie(token, bias); }
};

/// What is read from the hidden states of a prompt, behind the last norm.
enum class hidden_pooling : std::uint8_t {
  none,
  last,  ///< the last token's
  mean   ///< the mean of all tokens'
};
constexpr hidden_pooling last_enumerator(hidden_pooling) {
  return hidden_pooling::mean;
}

/// How a sequence's next token is chosen and when the sequence ends. Names and meanings are OpenAI's and vLLM's.
struct sampling_params {
  double temperature = 1.0;         ///< 0: the most likely token, always
  std::int32_t top_k = 0;           ///< only the k most likely; 0: all
  double top_p = 1.0;               ///< only the most likely that together reach this share
  double min_p = 0.0;               ///< only those at least this share of the most likely one
  double repetition_penalty = 1.0;  ///< divides positive logits, multiplies others: tokens of prompt and answer
  double presence_penalty = 0.0;    ///< subtracted once for each token in the answer
  double frequency_penalty = 0.0;   ///< subtracted for each time a token is in the answer
  std::vector<token_bias> logit_bias;
  std::uint64_t seed = 0;
  std::optional<std::int32_t> logprobs;         ///< alternatives to report; 0: the chosen token's alone; none: nothing
  std::optional<std::int32_t> prompt_logprobs;  ///< likewise for each token of the prompt

  std::vector<token_id> stop_tokens;  ///< beside the model's own end tokens
  bool ignore_eos = false;            ///< the model's own end tokens do not end the sequence
  std::vector<std::string> stop;      ///< texts that end the sequence
  std::int64_t max_tokens = 16;  ///< of the answer; 0 only where the prompt's probabilities or states are asked for
  std::int64_t min_tokens = 0;   ///< before so many neither a token nor a stop text ends it
  output_constraint constraint;  ///< of the answer's form; then it ends only where the form is complete
  hidden_pooling pooling = hidden_pooling::none;  ///< else there is no answer: the prompt is computed alone

  auto fields() {
    return std::tie(temperature, top_k, top_p, min_p, repetition_penalty, presence_penalty, frequency_penalty,
                    logit_bias, seed, logprobs, stop_tokens, ignore_eos, stop, max_tokens, constraint, pooling,
                    prompt_logprobs, min_tokens);
  }
};

/// The stops and biases of one request take no more on the wire.
inline constexpr std::size_t most_list_bytes = std::size_t{64} << 10;

bool is_greedy(const sampling_params& params);
bool counts_tokens(const sampling_params& params);   ///< any penalty is in use
bool changes_logits(const sampling_params& params);  ///< any penalty or bias is in use
/// The largest of the logits as they come is always the token, and nothing else is asked of them.
bool wants_largest(const sampling_params& params);
/// The tokens that end an answer. `end_tokens`: the model's own.
std::vector<token_id> ends_of(const sampling_params& params, std::span<const token_id> end_tokens);
/// Those of them that may not come next, in an answer of so many tokens: all before min_tokens, none then.
std::span<const token_id> barred_ends(std::span<const token_id> ends, const sampling_params& params,
                                      std::size_t written);

/// Throws field_error of the first value out of range; of a constraint that is too long, input_error.
void check(const sampling_params& params, std::int64_t vocab_size);

}  // namespace troupe
