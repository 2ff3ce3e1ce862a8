// Web pages from elsewhere (CORS): a browser lets a page read an answer only if the server says so in its headers.
#pragma once
#include <memory>

#include "actors/http/api_context.hpp"
#include "transport/http/http_exchange.hpp"

namespace troupe {

/// Whether the request comes from a page whose origin the cluster's file names.
bool has_shared_origin(const api_context& context, const http_request& request);

/// `to`, whose answers such a page may read. For all others, too, answers depend on who asks as soon as there are
/// names.
std::shared_ptr<http_exchange> share_exchange(std::shared_ptr<http_exchange> to, const api_context& context,
                                              const http_request& request);

/// Whether the browser of such a page asks what the page may send, before it sends it.
bool is_preflight(const api_context& context, const http_request& request);
http_response answer_to_preflight(const http_request& request);

}  // namespace troupe
