#include "model/engine/sampling/sampling_params.hpp"

#include <unordered_set>

#include "base/field_error.hpp"

namespace troupe {
namespace {

constexpr double least_temperature = 1e-5;  ///< below this it counts as 0
constexpr double most_temperature = 100.0;
constexpr double most_repetition_penalty = 100.0;
constexpr double most_bias = 100.0;
constexpr std::size_t most_biases = 2048;
constexpr std::int32_t most_logprobs = 100;
constexpr std::size_t most_stop_tokens = 1024;
constexpr std::size_t most_stops = 32;
constexpr std::size_t most_stop_bytes = 1024;
static_assert(most_biases * (sizeof(token_id) + sizeof(double)) + most_stop_tokens * sizeof(token_id) +
                  most_stops * (sizeof(std::uint64_t) + most_stop_bytes) <=
              most_list_bytes);

/// Not-a-number is out of every range.
void check_range(const char* name, double value, double least, double most) {
  if (!(value >= least && value <= most))
    refuse_field(name, fmt::format("{} is {}: use a value from {} to {}", name, value, least, most));
}

void check_above_zero(const char* name, double value, double most) {
  if (!(value > 0.0 && value <= most))
    refuse_field(name, fmt::format("{} is {}: use a value above 0, up to {}", name, value, most));
}

void check_token(const char* name, token_id token, std::int64_t vocab_size) {
  if (!is_token(token, vocab_size))
    refuse_field(name, fmt::format("{} names token {}: the model has tokens 0 to {}", name, token, vocab_size - 1));
}

void check_bias(const std::vector<token_bias>& biases, std::int64_t vocab_size) {
  if (biases.size() > most_biases)
    refuse_field("logit_bias", fmt::format("logit_bias has {} tokens: use at most {}", biases.size(), most_biases));
  std::unordered_set<token_id> seen;
  for (const auto& [token, bias] : biases) {
    check_token("logit_bias", token, vocab_size);
    check_range("logit_bias", bias, -most_bias, most_bias);
    if (!seen.insert(token).second)
      refuse_field("logit_bias", fmt::format("logit_bias names token {} twice: name it once", token));
  }
}

void check_ends(const sampling_params& params, std::int64_t vocab_size) {
  if (params.stop_tokens.size() > most_stop_tokens)
    refuse_field("stop_token_ids", fmt::format("stop_token_ids has {} tokens: use at most {}",
                                               params.stop_tokens.size(), most_stop_tokens));
  for (const token_id token : params.stop_tokens) check_token("stop_token_ids", token, vocab_size);
  if (params.stop.size() > most_stops)
    refuse_field("stop", fmt::format("stop has {} texts: use at most {}", params.stop.size(), most_stops));
  for (const auto& text : params.stop) {
    if (text.empty()) refuse_field("stop", "stop has an empty text: leave it out");
    if (text.size() > most_stop_bytes)
      refuse_field("stop", fmt::format("stop has a text of {} bytes: use at most {}", text.size(), most_stop_bytes));
  }
  const int least_tokens = params.prompt_logprobs || params.pooling != hidden_pooling::none ? 0 : 1;
  if (params.max_tokens < least_tokens)
    refuse_field("max_tokens", fmt::format("max_tokens is {}: use {} or more", params.max_tokens, least_tokens));
  if (params.min_tokens < 0 || params.min_tokens > params.max_tokens)
    refuse_field("min_tokens",
                 fmt::format("min_tokens is {}: use a value from 0 to {}, the most that the answer may have",
                             params.min_tokens, params.max_tokens));
  if (params.constraint.bytes() > most_constraint_bytes)
    refuse("{}: has {} bytes: use at most {}", name_of(params.constraint.kind), params.constraint.bytes(),
           most_constraint_bytes);
}

}  // namespace

bool is_greedy(const sampling_params& params) {
  return params.temperature < least_temperature;
}

bool counts_tokens(const sampling_params& params) {
  return params.repetition_penalty != 1.0 || params.presence_penalty != 0.0 || params.frequency_penalty != 0.0;
}

bool changes_logits(const sampling_params& params) {
  return counts_tokens(params) || !params.logit_bias.empty();
}

bool wants_largest(const sampling_params& params) {
  return (is_greedy(params) || params.top_k == 1) && !changes_logits(params) && !params.logprobs && !params.constraint;
}

std::vector<token_id> ends_of(const sampling_params& params, std::span<const token_id> end_tokens) {
  std::vector<token_id> ends = params.stop_tokens;
  if (!params.ignore_eos) ends.insert(ends.end(), end_tokens.begin(), end_tokens.end());
  return ends;
}

std::span<const token_id> barred_ends(std::span<const token_id> ends, const sampling_params& params,
                                      std::size_t written) {
  return static_cast<std::int64_t>(written) < params.min_tokens ? ends : std::span<const token_id>();
}

void check(const sampling_params& params, std::int64_t vocab_size) {
  check_range("temperature", params.temperature, 0.0, most_temperature);
  if (params.top_k < 0) refuse_field("top_k", fmt::format("top_k is {}: use 0 (off) or more", params.top_k));
  check_above_zero("top_p", params.top_p, 1.0);
  check_range("min_p", params.min_p, 0.0, 1.0);
  check_above_zero("repetition_penalty", params.repetition_penalty, most_repetition_penalty);
  check_range("presence_penalty", params.presence_penalty, -2.0, 2.0);
  check_range("frequency_penalty", params.frequency_penalty, -2.0, 2.0);
  if (params.logprobs) check_range("logprobs", *params.logprobs, 0, most_logprobs);
  if (params.prompt_logprobs) check_range("prompt_logprobs", *params.prompt_logprobs, 0, most_logprobs);
  check_bias(params.logit_bias, vocab_size);
  check_ends(params, vocab_size);
}

}  // namespace troupe
