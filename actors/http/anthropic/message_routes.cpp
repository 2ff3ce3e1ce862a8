#include "actors/http/answers/asked_body.hpp"
#include "actors/http/anthropic/messages.hpp"
#include "actors/http/routes.hpp"

namespace troupe {
namespace {

/// What the message's `usage` would count as input, from the cache or not.
void count_tokens(const api_call& call) {
  count_prompt(call, read_message_order, nullptr);
}

}  // namespace

void add_message_routes(api_routes& to) {
  to.add("POST", "/v1/messages/count_tokens", count_tokens);
}

}  // namespace troupe
