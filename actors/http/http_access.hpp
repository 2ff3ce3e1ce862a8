#pragma once
#include "actors/http/api_context.hpp"
#include "transport/http/http_message.hpp"

namespace troupe {

/// The key that a request came with: an admin's without a name, which stands for everyone, where there are no keys.
/// Throws api_error where the request is not to be answered: it has no good key, or is some web page's from elsewhere.
api_key admit(api_context& context, const http_request& request);

}  // namespace troupe
