#include <fmt/format.h>

#include "actors/http/api_error.hpp"
#include "actors/http/json_text.hpp"
#include "actors/http/page.hpp"
#include "actors/http/routes.hpp"

namespace troupe {
namespace {

/// Sections are JSON already.
std::string status_json(const api_context& context) {
  std::string made = "{\"model\":" + json_text(context.parts.model);
  for (const char* section : {"nodes", "replicas", "adapters", "jobs", "gateway"}) {
    const std::string text = context.parts.board->read(section);
    made += fmt::format(",\"{}\":{}", section, text.empty() ? "[]" : text);
  }
  if (const std::string problem = context.parts.board->read("journal"); !problem.empty())
    made += ",\"journal\":" + problem;
  return made + "}";
}

}  // namespace

void add_status_routes(api_routes& to) {
  const auto context = to.context();
  to.add_open("GET", "/health", [](const auto&, const auto&, const auto& exchange) {
    exchange->reply({200, "application/json", R"({"status":"alive"})", {}});
  });
  to.add_open("GET", "/ready", [context](const auto&, const auto&, const auto& exchange) {
    if (!context->is_ready())
      throw api_error(503, "no replica can serve at the moment", {}, "service_unavailable")
          .retry_after(std::chrono::seconds(1));
    exchange->reply({200, "application/json", R"({"status":"ready"})", {}});
  });
  to.add_open("GET", "/metrics", [context](const auto&, const auto&, const auto& exchange) {
    exchange->reply({200,
                     "text/plain; version=0.0.4; charset=utf-8",
                     context->metrics.write(context->parts.model, context->parts.board->read("replicas"),
                                            context->parts.board->read("nodes")),
                     {}});
  });
  to.add_open("GET", "/", [](const auto&, const auto&, const auto& exchange) {
    exchange->reply({200,
                     "text/html; charset=utf-8",
                     std::string(page_html()),
                     {{"content-security-policy",
                       "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'; "
                       "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"},
                      {"x-content-type-options", "nosniff"},
                      {"cache-control", "no-cache"}}});
  });
  to.add("GET", "/status", [context](const auto&, const auto&, const auto& exchange) {
    exchange->reply({200, "application/json", status_json(*context), {{"cache-control", "no-store"}}});
  });
}

}  // namespace troupe
