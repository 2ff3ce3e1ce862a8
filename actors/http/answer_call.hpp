// One request of the API on its way through the gateway: several prompts, several answers each, one response.
#pragma once
#include <memory>

#include "actors/http/api_context.hpp"
#include "actors/requests/answer_order.hpp"

namespace troupe {

/// Answers `call` when the gateway has answered; ends the requests when the client goes. Throws what is wrong with the
/// order.
void start_answer(const api_call& call, asked_answer asked);

}  // namespace troupe
