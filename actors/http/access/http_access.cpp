#include "actors/http/access/http_access.hpp"

#include "actors/http/access/shared_origins.hpp"
#include "actors/http/api_error.hpp"
#include "base/ascii.hpp"
#include "base/host_port.hpp"

namespace troupe {
namespace {

std::string_view bearer_of(const http_request& request) {
  constexpr std::string_view scheme = "bearer ";
  const std::string_view given = request.header("authorization");
  return lower_case(given.substr(0, scheme.size())) == scheme ? given.substr(scheme.size()) : std::string_view();
}

/// As OpenAI's clients send it, or as Anthropic's do.
std::string_view key_of(const http_request& request) {
  const std::string_view bearer = bearer_of(request);
  return bearer.empty() ? request.header("x-api-key") : bearer;
}

std::string_view host_in(std::string_view origin) {
  const std::size_t scheme = origin.find("://");
  return scheme == origin.npos ? origin : origin.substr(scheme + 3);
}

/// The host without its port: "localhost:8000" → "localhost", "[::1]:8000" → "::1"
std::string name_in(std::string_view host) {
  if (host.starts_with('[')) return std::string(host.substr(1, host.find(']') - 1));
  return std::string(host.substr(0, host.rfind(':')));
}

/// Whether a host is an address, or a name that nobody can register.
bool is_no_strangers(const std::string& name) {
  return name.find('.') == name.npos || is_numeric_host(name) || name.ends_with(".localhost") ||
         name.ends_with(".internal");
}

/// The host that the first proxy on the way was asked for; empty if no proxy says so. A stranger's page cannot forge
/// it: a browser asks the server before it sends a header of a page's own, and this server refuses.
std::string_view forwarded_host(const http_request& request) {
  std::string_view first = request.header("x-forwarded-host");
  first = first.substr(0, first.find(','));
  while (first.ends_with(' ')) first.remove_suffix(1);
  return first;
}

/// A web page from elsewhere must not use this server through somebody's browser. Refuses its requests, also if the
/// page's own name was made to point here (DNS rebinding), so that the browser takes this server for the page's.
void check_page(api_context& context, const http_request& request) {
  const std::string_view origin = request.header("origin"), host = request.header("host");
  const auto is_from = [&](std::string_view own) { return !own.empty() && host_in(origin) == own; };
  if (!origin.empty() && !is_from(host) && !is_from(forwarded_host(request)) && !has_shared_origin(context, request))
    throw api_error(
        403,
        fmt::format("web pages of {} are not answered: name it in http_origins of the cluster's file (troupe "
                    "serve: --http-origins), put page and server behind one proxy, or let the page's own "
                    "server ask",
                    origin.substr(0, 128)),
        {}, "forbidden_origin");
  if (!context.is_this_machines || !context.keys.is_open()) return;
  for (const std::string& name : {name_in(host), name_in(forwarded_host(request))})
    if (!is_no_strangers(name))
      throw api_error(403,
                      fmt::format("requests to {} are not answered here without keys: ask by an address or as "
                                  "localhost, or make a key with `troupe keys add`",
                                  name.substr(0, 128)),
                      {}, "forbidden_host");
}

}  // namespace

api_key admit(api_context& context, const http_request& request) {
  check_page(context, request);
  if (context.keys.is_open()) {
    api_key everyone;
    everyone.is_admin = true;
    return everyone;
  }
  const std::string_view key = key_of(request);
  if (key.empty())
    throw api_error(401, "an API key is needed: authorization: Bearer KEY, or x-api-key: KEY", {}, "invalid_api_key");
  auto found = context.keys.find(key);
  if (!found) throw api_error(401, "the API key is not known here", {}, "invalid_api_key");
  return *std::move(found);
}

void name_key(const api_key& key, http_exchange& exchange) {
  if (key.name.empty()) return;
  exchange.mark_trusted();
  exchange.note("key " + key.name);
}

bool is_admitted(api_context& context, const http_request& request) try {
  (void)admit(context, request);
  return true;
} catch (const std::exception&) {
  return false;
}

}  // namespace troupe
