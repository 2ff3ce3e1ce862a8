// Web pages from elsewhere (CORS): a browser lets a page read an answer only if the server says so in its headers.
#pragma once
#include "actors/http/api_context.hpp"
#include "transport/http/http_message.hpp"

namespace troupe {

/// Whether the request comes from a page whose origin the cluster's file names.
bool has_shared_origin(const api_context& context, const http_request& request);

/// What every answer says, so that such a page may read it. Once origins are named, that depends on who asks: a cache
/// must not give one page's answer to another.
http_headers headers_for_pages(const api_context& context, const http_request& request);

/// Whether the browser of such a page asks what the page may send, before it sends it.
bool is_preflight(const api_context& context, const http_request& request);
http_response answer_to_preflight(const http_request& request);

}  // namespace troupe
