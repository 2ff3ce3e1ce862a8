#include "actors/http/answers/asked_body.hpp"
#include "actors/http/anthropic/messages.hpp"
#include "actors/http/json_body_impl.hpp"
#include "actors/http/routes.hpp"

namespace troupe {
namespace {

/// How many tokens the prompt of a message would have: what its `usage` counts as input, from the cache or not.
void count_tokens(const api_call& call) {
  with_asked_body(call, [call](const request_fields& body) {
    const served_model& served = call.context->served;
    const chat_order asked = read_message_order(body, served);
    reply_json(call.exchange, {{"input_tokens", served.prompts->encode(asked.order.prompts.front()).size()}});
  });
}

}  // namespace

void add_message_routes(api_routes& to) {
  to.add("POST", "/v1/messages/count_tokens", count_tokens);
}

}  // namespace troupe
