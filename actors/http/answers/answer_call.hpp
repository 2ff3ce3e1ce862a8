// Takes one request of the API through the gateway: several prompts, several answers each, one response.
#pragma once

#include "actors/http/api_context.hpp"
#include "actors/requests/answer_order.hpp"

namespace troupe {

/// Answers `call` when the gateway has answered; ends its requests if the client leaves. Throws if the order is wrong.
void start_answer(const api_call& call, asked_answer asked);

}  // namespace troupe
