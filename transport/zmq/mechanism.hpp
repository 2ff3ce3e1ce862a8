#pragma once
#include <string>

namespace troupe::detail {

/// What a ZeroMQ listener's own greeting says of keys: "NULL" (it has none) or "CURVE". Empty where nobody says it
/// within a fifth of a second.
std::string mechanism_at(const std::string& endpoint);

}  // namespace troupe::detail
