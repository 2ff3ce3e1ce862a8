#include "actors/http/http_front.hpp"

#include <fmt/format.h>

#include "actors/http/access/http_access.hpp"
#include "actors/http/access/shared_origins.hpp"
#include "actors/http/anthropic/message_errors.hpp"
#include "actors/http/api_error.hpp"
#include "actors/http/logged_exchange.hpp"
#include "actors/http/lorax/generate_errors.hpp"
#include "actors/http/routes.hpp"
#include "base/host_port.hpp"

namespace troupe {
namespace {

/// Says where the API is, since many clients are given an address without /v1.
constexpr std::string_view where_the_api_is =
    "OpenAI's API is at /v1: /v1/chat/completions, /v1/completions; Anthropic's at /v1/messages; LoRAX's and TGI's at "
    "/generate";

http_response nothing_at(std::string_view path) {
  return error_response(api_error(404, fmt::format("there is nothing at {}: {}", path.substr(0, 128), where_the_api_is),
                                  {}, "unknown_url"));
}

http_response wrong_method(const http_request& request, const std::string& allowed) {
  http_response refused = error_response(api_error(
      405, fmt::format("{} has no {}: use {}", request.path.substr(0, 128), request.method.substr(0, 16), allowed)));
  refused.headers.emplace_back("allow", allowed);
  return refused;
}

/// For what no route answers. Whoever shows no valid key stays a stranger.
void name_key_of(api_context& context, const http_request& request, http_exchange& exchange) try {
  name_key(admit(context, request), exchange);
} catch (const std::exception&) {
}

}  // namespace

http_front::http_front(const http_options& options, http_parts parts)
    : context_(std::make_shared<api_context>(std::move(parts))), server_(options, *this) {
  context_->is_this_machines = is_loopback_host(options.host);
  api_routes to(router_, context_);
  add_text_routes(to);
  add_message_routes(to);
  add_generate_routes(to);
  add_model_routes(to);
  add_status_routes(to);
  add_file_routes(to);
  add_batch_routes(to);
  add_fine_tuning_routes(to);
  server_.start();
}

bool http_front::is_open_to_others() const {
  return !context_->is_this_machines && context_->keys.is_open();
}

http_front::~http_front() {
  stop();
}

void http_front::handle(http_request&& request, std::shared_ptr<http_exchange> exchange) {
  auto logged = log_exchange(std::move(exchange), context_, request);
  if (is_for_messages(request)) logged = message_exchange(std::move(logged));
  if (is_for_generation(request)) logged = generation_exchange(std::move(logged));
  if (is_preflight(*context_, request)) return logged->reply(answer_to_preflight(request));
  auto found = router_.find(request.method, request.path);
  if (found.handler) {
    request.path_parts = std::move(found.path_parts);
    return (*found.handler)(std::move(request), std::move(logged));
  }
  name_key_of(*context_, request, *logged);
  logged->reply(found.allowed.empty() ? nothing_at(request.path) : wrong_method(request, found.allowed));
}

std::string http_front::error_body(int status, std::string_view why) const {
  return error_json(status == 503 ? unavailable(std::string(why)) : api_error(status, std::string(why)));
}

http_headers http_front::more_headers(const http_request& request) const {
  return headers_for_pages(*context_, request);
}

std::shared_ptr<http_exchange> http_front::around_refusal(std::shared_ptr<http_exchange> exchange,
                                                          const http_request& request) {
  auto logged = log_exchange(std::move(exchange), context_, request);
  name_key_of(*context_, request, *logged);
  return logged;
}

bool http_front::takes_long_body(const http_request& head) {
  return is_admitted(*context_, head);
}

void http_front::on_surplus() {
  context_->metrics.count_refused_connection();
}

void http_front::stop() {
  server_.stop();
  context_->work->stop();
  context_->file_work->stop();
}

}  // namespace troupe
