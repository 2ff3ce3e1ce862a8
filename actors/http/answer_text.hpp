// What answers of all kinds say alike.
#pragma once
#include <string>
#include <vector>

#include "actors/requests/answer_order.hpp"

namespace troupe {

/// {"prompt_tokens","completion_tokens","total_tokens","prompt_tokens_details":{"cached_tokens"}}
std::string usage_json(const answer_usage& usage);
/// A token's text for logprobs.
std::string token_text(const tokenizer& tokens, token_id token);
/// The same as completions name it, where texts are keys: OpenAI writes one that is no whole character as bytes:\xe6,
/// or all such would be one key.
std::string completion_token(const std::string& text);
/// JSON has no infinity: what is impossible has -9999.
double finite_logprob(float logprob);
/// A chat's: [{"token", "logprob", "bytes", "top_logprobs": [{"token", "logprob", "bytes"}]}]
std::string token_logprobs_json(const tokenizer& tokens, const std::vector<sampled_token>& details);
/// vLLM's: [null, {"42": {"logprob", "rank", "decoded_token"}, …}, …], each token of the prompt and the `most`
/// likeliest in its place.
std::string prompt_logprobs_json(const tokenizer& tokens, const std::vector<sampled_token>& scored, std::int32_t most);

}  // namespace troupe
