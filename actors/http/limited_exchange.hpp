#pragma once
#include <memory>

#include "actors/http/api_context.hpp"

namespace troupe {

/// Counts a request against its key's limits, until the exchange that is returned is let go; its answer says how the
/// key stands (x-ratelimit-…). Null, and the call answered with 429, where the key may not ask for more at the moment.
std::shared_ptr<http_exchange> limit_exchange(const api_call& call);

}  // namespace troupe
