#include "actors/http/answers/answer_call.hpp"
#include "actors/http/answers/answering_paths.hpp"
#include "actors/http/answers/asked_body.hpp"
#include "actors/http/answers/order_fields.hpp"
#include "actors/http/chats/chat_order.hpp"
#include "actors/http/chats/responses.hpp"
#include "actors/http/json_body_impl.hpp"
#include "actors/http/routes.hpp"

namespace troupe {
namespace {

constexpr std::size_t most_detokenized = 1 << 20;

void answer(const api_call& call, decltype(answering_path::read) read) {
  with_asked_body(call,
                  [call, read](const request_fields& body) { start_answer(call, read(body, call.context->served)); });
}

/// Of messages, as a chat has them: a field that a chat refuses would make others of them.
std::vector<token_id> tokens_of_chat(const request_fields& from, const prompting& prompts) {
  if (from.has("prompt"))
    refuse_field("prompt", "prompt does not go with messages: leave one out", "unsupported_value");
  refuse_unserved(from);
  sampling_params sampling;
  sampling.max_tokens = max_tokens_of(from);
  return prompts.encode(read_chat(from), sampling);
}

/// Of a text, or of the messages of a chat.
std::vector<token_id> tokens_of(const request_fields& from, const prompting& prompts) {
  if (from.has("messages")) return tokens_of_chat(from, prompts);
  const auto text = from.text("prompt");
  if (!text) request_fields::refuse_missing("prompt");
  prompts.check_size(*text, "prompt");
  encode_options options;
  options.add_special = from.boolean("add_special_tokens").value_or(true);
  return prompts.tokens().encode(*text, options);
}

/// Throws api_error where there is nothing that could tell what tokens are.
const prompting& readable(const api_call& call) {
  const prompting& prompts = *call.context->served.prompts;
  if (!prompts.has_tokenizer()) throw api_error(501, "the model has no tokenizer");
  return prompts;
}

void count_input(const api_call& call) {
  count_prompt(call, read_response_order, "response.input_tokens");
}

/// As in vLLM: {"prompt", "add_special_tokens", "return_token_strs"}, or {"messages", …}.
void tokenize(const api_call& call) {
  const json body = parse_body(call.request->body);
  const request_fields from(body);
  const prompting& prompts = readable(call);
  const auto tokens = tokens_of(from, prompts);
  json answer{{"count", tokens.size()}, {"max_model_len", prompts.context()}, {"tokens", tokens}};
  answer["token_strs"] = nullptr;
  if (from.boolean("return_token_strs").value_or(false)) {
    answer["token_strs"] = json::array();
    for (const token_id token : tokens) answer["token_strs"].push_back(std::string(prompts.tokens().bytes_of(token)));
  }
  reply_json(call.exchange, answer);
}

void detokenize(const api_call& call) {
  const json body = parse_body(call.request->body);
  const request_fields from(body);
  const prompting& prompts = readable(call);
  const auto tokens = from.tokens("tokens");
  if (!tokens) request_fields::refuse_missing("tokens");
  if (tokens->size() > most_detokenized) refuse_field("tokens", "tokens has too many entries");
  for (const token_id token : *tokens)
    if (token >= prompts.config().vocab_size) refuse_field("tokens", "tokens should be a list of the model's tokens");
  reply_json(call.exchange, {{"prompt", prompts.tokens().decode(*tokens, false)}});
}

}  // namespace

void add_text_routes(api_routes& to) {
  for (const answering_path& each : answering_paths)
    to.add_limited("POST", each.path, [read = each.read](const api_call& call) { answer(call, read); });
  to.add("POST", "/v1/responses/input_tokens", count_input);
  for (const char* path : {"/tokenize", "/v1/tokenize"}) to.add("POST", path, tokenize);
  for (const char* path : {"/detokenize", "/v1/detokenize"}) to.add("POST", path, detokenize);
}

}  // namespace troupe
