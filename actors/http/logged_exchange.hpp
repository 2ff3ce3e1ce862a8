#pragma once
#include <memory>

#include "actors/http/api_context.hpp"

namespace troupe {

/// Counts the request's response and writes a line into the log, when the returned exchange is gone.
std::shared_ptr<http_exchange> log_exchange(std::shared_ptr<http_exchange> to, std::shared_ptr<api_context> context,
                                            const http_request& request);

}  // namespace troupe
