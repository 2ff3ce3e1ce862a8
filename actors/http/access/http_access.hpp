#pragma once
#include "actors/http/api_context.hpp"
#include "transport/http/http_message.hpp"

namespace troupe {

/// The key of a request. If there are no keys, it is an admin's without a name, which stands for everyone. Throws
/// api_error if the request must be refused: it has no valid key, or is sent by a web page from elsewhere.
api_key admit(api_context& context, const http_request& request);
/// Tells the exchange whose request it answers: the log names the key, and the connection is trusted. Where it is
/// everyone's, nobody is named.
void name_key(const api_key& key, http_exchange& exchange);
/// The same as admit() as a question; never throws.
bool is_admitted(api_context& context, const http_request& request);

}  // namespace troupe
