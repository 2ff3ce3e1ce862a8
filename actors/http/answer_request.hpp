// What completions and chats have in common: the fields of a request, and how answers are described.
#pragma once
#include <nlohmann/json_fwd.hpp>

#include "actors/http/answer_call.hpp"

namespace troupe {

class api_fields;

/// Model or adapter, sampling, n, stream, priority: in OpenAI's names and vLLM's. Prompts are left to the caller.
/// Throws api_error.
answer_order read_order(const api_fields& from, const api_context& context, const std::string& owner);
/// Texts or tokens under `key`: a text, a list of texts, a list of tokens, or a list of lists of tokens.
std::vector<prompt_input> read_prompts(const api_fields& from, std::string_view key);
/// Refuses by name what would change the answer and is not served.
void refuse_unserved(const api_fields& from);

/// A token's text for logprobs.
std::string token_text(const tokenizer& tokens, token_id token);

}  // namespace troupe
