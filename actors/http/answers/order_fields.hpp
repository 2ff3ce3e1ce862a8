// The fields that requests for completions, chats and embeddings have in common.
#pragma once
#include "actors/http/served_model.hpp"
#include "actors/requests/answer_order.hpp"

namespace troupe {

class request_fields;

/// Reads model or adapter, sampling, n, stream and priority, in OpenAI's names and vLLM's. Prompts are left to the
/// caller. Throws field_error, and api_error if there is no such model.
answer_order read_order(const request_fields& from, const served_model& served);
/// What read_order does first: throws field_error where a known field is not served and would change the answer.
void refuse_unserved(const request_fields& from);
/// How many tokens an answer may have, at least `least`; -1, as llama.cpp and LM Studio have it, is what the context
/// has room for. Nothing where the request does not say.
std::optional<std::int64_t> most_tokens_of(const request_fields& from, const char* key, std::int64_t least);
/// vLLM's truncate_prompt_tokens and truncation_side: how a longer prompt is shortened.
void read_shortening(const request_fields& from, prompt_input& to);
/// Reads `key`: a text, a list of texts, a list of tokens, or a list of lists of tokens.
void read_prompts(const request_fields& from, const char* key, answer_order& order);

}  // namespace troupe
