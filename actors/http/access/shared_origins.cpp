#include "actors/http/access/shared_origins.hpp"

#include <algorithm>

namespace troupe {

bool has_shared_origin(const api_context& context, const http_request& request) {
  const auto& known = context.origins;
  return std::find(known.begin(), known.end(), request.header("origin")) != known.end();
}

http_headers headers_for_pages(const api_context& context, const http_request& request) {
  if (context.origins.empty()) return {};
  http_headers headers{{"vary", "Origin"}};
  if (has_shared_origin(context, request)) {
    headers.emplace_back("access-control-allow-origin", request.header("origin"));
    headers.emplace_back("access-control-expose-headers", "*");  // x-request-id, retry-after, x-ratelimit-…
  }
  return headers;
}

bool is_preflight(const api_context& context, const http_request& request) {
  return request.method == "OPTIONS" && !request.header("access-control-request-method").empty() &&
         has_shared_origin(context, request);
}

/// Says yes to every header, since clients have many of their own. The path does not matter: a page should be able to
/// read that there is nothing at it.
http_response answer_to_preflight(const http_request& request) {
  http_response answer{.content_type = ""};
  answer.headers.emplace_back("access-control-allow-methods", "GET, POST, DELETE");
  if (const auto wanted = request.header("access-control-request-headers"); !wanted.empty())
    answer.headers.emplace_back("access-control-allow-headers", wanted);
  answer.headers.emplace_back("access-control-max-age", "7200");  // seconds, the longest that browsers keep
  return answer;
}

}  // namespace troupe
