// The body of a request that asks the model, or what asking it would take.
#pragma once
#include <functional>

#include "actors/http/api_context.hpp"

namespace troupe {

class request_fields;

/// Calls `read` with the body: at once, or on the thread for long work where reading takes long. Throws input_error if
/// it is none.
void with_asked_body(const api_call& call, std::function<void(const request_fields& body)> read);

}  // namespace troupe
