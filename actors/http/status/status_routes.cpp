#include <algorithm>

#include <fmt/format.h>

#include "actors/http/api_error.hpp"
#include "actors/http/json_text.hpp"
#include "actors/http/routes.hpp"
#include "actors/http/status/page.hpp"

namespace troupe {
namespace {

void show_liveness(const api_call& call) {
  call.exchange->reply({.body = R"({"status":"alive"})"});
}

void show_readiness(const api_call& call) {
  const auto replicas = call.context->board->replicas();
  if (std::ranges::none_of(replicas, [](const auto& each) { return each.second.ready; }))
    throw unavailable("no replica can serve at the moment");
  call.exchange->reply({.body = R"({"status":"ready"})"});
}

/// Figures of current adapters are there before the first request. Not where there are many, of which most may be idle:
/// each has some hundred lines.
void begin_series(api_context& context) {
  constexpr std::ptrdiff_t few = 20;
  const auto known = context.served.adapters->read();
  const auto is_current = [](const listed_adapter& each) { return each.name != each.full_name; };
  if (std::ranges::count_if(known->listed, is_current) > few) return;
  for (const listed_adapter& each : known->listed)
    if (is_current(each)) context.metrics.series(each.full_name);
}

void show_metrics(const api_call& call) {
  api_context& context = *call.context;
  begin_series(context);
  call.exchange->reply({.content_type = "text/plain; version=0.0.4; charset=utf-8",
                        .body = context.metrics.write(context.served.model, *context.board)});
}

void show_page(const api_call& call) {
  call.exchange->reply(
      {.content_type = "text/html; charset=utf-8",
       .body = std::string(page_html()),
       .headers = {{"content-security-policy",
                    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'; "
                    "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"},
                   {"x-content-type-options", "nosniff"},
                   {"cache-control", "no-cache"}}});
}

void show_status(const api_call& call) {
  const api_context& context = *call.context;
  const std::string members = context.board->json_of({"nodes", "replicas", "adapters", "jobs", "gateway"});
  const bool can_chat = context.served.prompts->no_chat().empty();
  call.exchange->reply(
      {.body = fmt::format(R"({{"model":{},"can_chat":{},{}}})", json_text(context.served.model), can_chat, members),
       .headers = {{"cache-control", "no-store"}}});
}

}  // namespace

void add_status_routes(api_routes& to) {
  to.add_open("GET", "/health", show_liveness);
  to.add_open("GET", "/ready", show_readiness);
  to.add_open("GET", "/metrics", show_metrics);
  to.add_open("GET", "/", show_page);
  to.add("GET", "/status", show_status);
}

}  // namespace troupe
