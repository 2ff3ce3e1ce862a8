// What several kinds of answers write in the same way.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "actors/requests/answer_order.hpp"

namespace troupe {

/// {"prompt_tokens","completion_tokens","total_tokens","prompt_tokens_details":{"cached_tokens"}}, and if there are any
/// "completion_tokens_details":{"reasoning_tokens"}.
std::string usage_json(const answer_usage& usage);
/// Frames of completions and chats are "data: ", a head up to the list of choices, choices, and this end.
std::string_view frame_end(const answer_order& order);
/// The frame that reports usage, without a choice.
std::string usage_frame(std::string_view head, const answer_usage& usage);
/// What stands between the model's name and the choices: the version that answered, as "system_fingerprint". `adapter`:
/// like "pricing@3"; empty: the bare base, `model`.
std::string before_choices(const std::string& model, const std::string& adapter);
/// The value of "finish_reason", and behind it vLLM's "stop_reason": the stop string or token that ended the answer.
std::string finish_json(const std::string& finish, const stop_reason& stopped_by);
/// So many tokens make a text that is a part of an answer.
std::int64_t token_count(const tokenizer& tokens, std::string_view text);
/// A token's text in logprobs.
std::string token_text(const tokenizer& tokens, token_id token);
/// The same for completions, where texts are keys of an object. A token that is no whole character is written as OpenAI
/// does, as bytes:\xe6; otherwise all such tokens would share one key.
std::string completion_token(const std::string& text);
/// [5,17,2]: the tokens of an answer, with the one that ended it, which is no part of its text.
std::string token_ids_json(std::span<const token_id> tokens, const std::optional<sampled_token>& ending = {});
/// A log-probability; -9999 for an impossible token, since JSON has no infinity.
double finite_logprob(float logprob);
/// The form in chats: [{"token", "logprob", "bytes", "top_logprobs": [{"token", "logprob", "bytes"}]}]
std::string token_logprobs_json(const tokenizer& tokens, const std::vector<sampled_token>& details);
/// vLLM's form for prompts: [null, {"42": {"logprob", "rank", "decoded_token"}, …}, …]. Each place has its token and
/// the `most` likeliest ones.
std::string prompt_logprobs_json(const tokenizer& tokens, const std::vector<sampled_token>& scored, std::int32_t most);

}  // namespace troupe
