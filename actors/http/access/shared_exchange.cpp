#include "actors/http/access/shared_exchange.hpp"

#include <algorithm>

#include "actors/http/forwarding_exchange.hpp"

namespace troupe {
namespace {

class shared_exchange final : public forwarding_exchange {
 public:
  shared_exchange(std::shared_ptr<http_exchange> to, http_headers more)
      : forwarding_exchange(std::move(to)), more_(std::move(more)) {}

  void reply(http_response response) override { forwarding_exchange::reply(with_more(std::move(response))); }
  void begin_stream(http_response head) override { forwarding_exchange::begin_stream(with_more(std::move(head))); }

 private:
  http_response with_more(http_response response) const {
    response.headers.insert(response.headers.end(), more_.begin(), more_.end());
    return response;
  }

  http_headers more_;
};

}  // namespace

bool has_shared_origin(const api_context& context, const http_request& request) {
  const auto& known = context.origins;
  return std::find(known.begin(), known.end(), request.header("origin")) != known.end();
}

std::shared_ptr<http_exchange> share_exchange(std::shared_ptr<http_exchange> to, const api_context& context,
                                              const http_request& request) {
  if (context.origins.empty()) return to;
  http_headers more{{"vary", "Origin"}};
  if (has_shared_origin(context, request)) {
    more.emplace_back("access-control-allow-origin", request.header("origin"));
    more.emplace_back("access-control-expose-headers", "*");  // x-request-id, retry-after, x-ratelimit-…
  }
  return std::make_shared<shared_exchange>(std::move(to), std::move(more));
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
