#include "actors/http/routes.hpp"

#include "actors/http/access/http_access.hpp"
#include "actors/http/access/limited_exchange.hpp"
#include "actors/requests/prompting.hpp"

namespace troupe {
namespace {

/// Handles long requests on another thread, so that they hold up nobody's stream.
void handle_call(const api_routes::api_handler& handler, const api_call& call) {
  const std::size_t bytes = call.request->body.size();
  if (bytes <= longest_at_once) return handler(call);
  guarded_later(
      *call.context->work, call.key.name, call.exchange, [handler, call] { handler(call); }, bytes);
}

void admit_call(api_call& call) {
  call.key = admit(*call.context, *call.request);
  name_key(call.key, *call.exchange);
}

}  // namespace

void api_routes::add_guarded(std::string_view method, std::string_view path, std::function<void(api_call&)> handle) {
  to_.add(method, path,
          [context = context_, handle = std::move(handle)](http_request&& request,
                                                           const std::shared_ptr<http_exchange>& exchange) {
            api_call call{.context = context,
                          .request = std::make_shared<const http_request>(std::move(request)),
                          .exchange = exchange,
                          .came = context->time.now()};
            guarded(exchange, [&] { handle(call); });
          });
}

void api_routes::add(std::string_view method, std::string_view path, api_handler handler) {
  add_guarded(method, path, [handler = std::move(handler)](api_call& call) {
    admit_call(call);
    handle_call(handler, call);
  });
}

void api_routes::add_limited(std::string_view method, std::string_view path, api_handler handler) {
  add_guarded(method, path, [handler = std::move(handler)](api_call& call) {
    admit_call(call);
    // Also a key without limits: what it uses by then is no debt once it has some.
    if (!call.key.name.empty()) call.exchange = limit_exchange(call);
    if (call.exchange) guarded(call.exchange, [&] { handle_call(handler, call); });
  });
}

void api_routes::add_open(std::string_view method, std::string_view path, api_handler handler) {
  add_guarded(method, path, handler);
}

}  // namespace troupe
