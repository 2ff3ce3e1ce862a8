#pragma once
#include <memory>

#include "actors/http/api_context.hpp"

namespace troupe {

/// Counts a request against its key's limits, until the exchange that is returned is let go; its answer says how the
/// key stands (x-ratelimit-…). Null, and `to` answered with 429, where the key may not ask for more at the moment.
std::shared_ptr<http_exchange> limit_exchange(const std::shared_ptr<http_exchange>& to,
                                              const std::shared_ptr<api_context>& context, const api_key& key);

}  // namespace troupe
