#include "cluster/config/config_address.hpp"

#include <arpa/inet.h>

#include <algorithm>

#include <fmt/format.h>

#include "base/ascii.hpp"
#include "base/number_in.hpp"

namespace troupe {
namespace {

constexpr std::string_view tcp = "tcp://", ipc = "ipc://";

std::optional<int> port_number(std::string_view text) {
  const auto port = number_in<int>(text);
  return port && *port >= 0 && *port <= 65535 ? port : std::nullopt;
}

}  // namespace

std::optional<host_port> split_host_port(std::string_view text) {
  const auto colon = text.rfind(':');
  if (colon == std::string_view::npos) return {};
  std::string_view host = text.substr(0, colon);
  const bool bracketed = host.size() > 2 && host.front() == '[' && host.back() == ']';
  if (bracketed) host = host.substr(1, host.size() - 2);
  if (!bracketed && host.find(':') != std::string_view::npos) return {};
  const auto port = port_number(text.substr(colon + 1));
  if (!port || !(host == "*" || is_host_text(host))) return {};
  return host_port{std::string(host), *port};
}

std::optional<host_port> split_endpoint(std::string_view text) {
  if (!text.starts_with(tcp)) return {};
  return split_host_port(text.substr(tcp.size()));
}

bool is_ipc(std::string_view endpoint) {
  return endpoint.starts_with(ipc);
}

bool is_loopback_host(std::string_view host) {
  in_addr address{};
  const std::string text(host);
  if (::inet_pton(AF_INET, text.c_str(), &address) == 1) return text.starts_with("127.");
  return host == "localhost" || host == "::1";
}

bool is_any_host(std::string_view host) {
  return host == "*" || host == "0.0.0.0" || host == "::";
}

bool is_numeric_host(const std::string& host) {
  in6_addr room{};
  return ::inet_pton(AF_INET, host.c_str(), &room) == 1 || ::inet_pton(AF_INET6, host.c_str(), &room) == 1;
}

bool is_host_text(std::string_view text) {
  if (text.empty() || text.size() > 253 || !(is_letter_or_digit(text[0]) || text[0] == ':')) return false;
  return std::all_of(text.begin(), text.end(), [](char c) {
    return is_letter_or_digit(c) || std::string_view(".:_-").find(c) != std::string_view::npos;
  });
}

bool is_web_origin(std::string_view text) {
  const std::size_t scheme_end = text.find("://");
  if (scheme_end == text.npos || text != lower_case(text)) return false;
  const std::string_view scheme = text.substr(0, scheme_end), place = text.substr(scheme_end + 3);
  const bool is_scheme = !scheme.empty() && std::all_of(scheme.begin(), scheme.end(), [](char c) {
    return is_letter_or_digit(c) || c == '-' || c == '+' || c == '.';
  });
  const bool has_own_port =
      (scheme == "https" && place.ends_with(":443")) || (scheme == "http" && place.ends_with(":80"));
  if (!is_scheme || has_own_port || place.starts_with('*')) return false;
  return split_host_port(place).has_value() || split_host_port(std::string(place) + ":80").has_value();
}

std::string tcp_endpoint(const std::string& host, int port) {
  const bool is_v6 = host.find(':') != std::string::npos;
  return is_v6 ? fmt::format("tcp://[{}]:{}", host, port) : fmt::format("tcp://{}:{}", host, port);
}

std::string reachable_endpoint(const std::string& listen, const std::string& host) {
  const auto place = split_endpoint(listen);
  return place && is_any_host(place->host) ? tcp_endpoint(host, place->port) : listen;
}

}  // namespace troupe
