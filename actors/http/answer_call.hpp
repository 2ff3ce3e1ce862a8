// One request of the API on its way through the gateway: several prompts, several answers each, one response.
#pragma once
#include <memory>

#include "actors/http/api_context.hpp"
#include "actors/requests/answer_order.hpp"

namespace troupe {

/// Answers `exchange` when the gateway has answered; ends the requests when the client goes. Throws what is wrong with
/// the order.
void start_answer(const std::shared_ptr<api_context>& context, asked_answer asked,
                  const std::shared_ptr<http_exchange>& exchange);

}  // namespace troupe
