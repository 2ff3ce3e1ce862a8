#pragma once
#include <optional>
#include <string>
#include <string_view>

namespace troupe {

struct host_port {
  std::string host;  ///< without the brackets of IPv6
  int port = 0;
};

/// "host:port", "[::1]:80" or "*:80".
std::optional<host_port> split_host_port(std::string_view text);
/// The part after tcp://; nothing for other endpoints.
std::optional<host_port> split_endpoint(std::string_view text);
bool is_ipc(std::string_view endpoint);

bool is_loopback_host(std::string_view host);
bool is_any_host(std::string_view host);  ///< all addresses of a machine
bool is_numeric_host(const std::string& host);
/// Whether a text has only characters of names and addresses, and does not begin with a dash like an option.
bool is_host_text(std::string_view text);

/// Whether a browser says it of a page: "https://chat.example.org", "http://localhost:3000". Upper case and a port that
/// the scheme has anyway are not what browsers say.
bool is_web_origin(std::string_view text);

std::string tcp_endpoint(const std::string& host, int port);
/// Where other machines reach what listens there on `host`: an endpoint for all addresses becomes one for `host`.
std::string reachable_endpoint(const std::string& listen, const std::string& host);

}  // namespace troupe
