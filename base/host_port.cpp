#include "base/host_port.hpp"

#include <algorithm>
#include <cstdint>

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>

#include "base/ascii.hpp"
#include "base/number_in.hpp"

namespace troupe {

std::optional<host_port> split_host_port(std::string_view text) {
  const auto colon = text.rfind(':');
  if (colon == std::string_view::npos) return {};
  std::string_view host = text.substr(0, colon);
  const bool bracketed = host.size() > 2 && host.front() == '[' && host.back() == ']';
  if (bracketed) host = host.substr(1, host.size() - 2);
  if (!bracketed && host.find(':') != std::string_view::npos) return {};
  const auto port = number_in<std::uint16_t>(text.substr(colon + 1));
  if (!port || !(host == "*" || is_host_text(host))) return {};
  return host_port{std::string(host), *port};
}

std::string text_of(const host_port& place) {
  const bool is_v6 = place.host.find(':') != std::string::npos;
  return is_v6 ? fmt::format("[{}]:{}", place.host, place.port) : fmt::format("{}:{}", place.host, place.port);
}

std::optional<host_port> split_endpoint(std::string_view text) {
  constexpr std::string_view tcp = "tcp://";
  if (!text.starts_with(tcp)) return {};
  return split_host_port(text.substr(tcp.size()));
}

std::optional<std::string> socket_file(std::string_view endpoint) {
  constexpr std::string_view ipc = "ipc://";
  if (!endpoint.starts_with(ipc)) return {};
  return std::string(endpoint.substr(ipc.size()));
}

bool is_loopback_host(const std::string& host) {
  if (lower_case(host) == "localhost") return true;
  in_addr four{};
  if (::inet_pton(AF_INET, host.c_str(), &four) == 1) return (ntohl(four.s_addr) >> 24) == 127;
  in6_addr six{};
  return ::inet_pton(AF_INET6, host.c_str(), &six) == 1 && IN6_IS_ADDR_LOOPBACK(&six);
}

std::string plain_host(const std::string& host) {
  if (is_loopback_host(host)) return "127.0.0.1";
  in6_addr six{};
  char text[INET6_ADDRSTRLEN];
  if (::inet_pton(AF_INET6, host.c_str(), &six) == 1 && ::inet_ntop(AF_INET6, &six, text, sizeof text)) return text;
  return lower_case(host);
}

bool on_one_host(const std::string& a, const std::string& b) {
  return plain_host(a) == plain_host(b);
}

bool is_numeric_host(const std::string& host) {
  in6_addr room{};
  return ::inet_pton(AF_INET, host.c_str(), &room) == 1 || ::inet_pton(AF_INET6, host.c_str(), &room) == 1;
}

bool is_host_text(std::string_view text) {
  if (text.empty() || text.size() > 253 || !(is_letter_or_digit(text[0]) || text[0] == ':')) return false;
  return std::all_of(text.begin(), text.end(), [](char c) {
    return is_letter_or_digit(c) || std::string_view(".:_-%").find(c) != std::string_view::npos;
  });
}

}  // namespace troupe
