#pragma once
#include <memory>

#include "actors/http/api_context.hpp"

namespace troupe {

/// Counts a request against its key's limits, until it is answered or the returned exchange is gone. The answer shows
/// the state of the limits (x-ratelimit-…). Returns null, and answers with 429, if the key may not ask for more now.
std::shared_ptr<http_exchange> limit_exchange(const api_call& call);

}  // namespace troupe
