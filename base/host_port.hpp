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
/// Back again.
std::string text_of(const host_port& place);
/// The part after tcp://; nothing for other endpoints.
std::optional<host_port> split_endpoint(std::string_view text);
/// The part after ipc://, a socket's file; nothing for other endpoints.
std::optional<std::string> socket_file(std::string_view endpoint);

bool is_loopback_host(const std::string& host);
/// One of the ways to write a host's name: equal for all of its names and addresses that tell by themselves that they
/// are one host's.
std::string plain_host(const std::string& host);
/// Whether two names are those of one host, as far as they tell.
bool on_one_host(const std::string& a, const std::string& b);
bool is_numeric_host(const std::string& host);
/// Whether a text has only characters of names and addresses (% precedes a zone of IPv6), and does not begin
/// with a dash like an option.
bool is_host_text(std::string_view text);

}  // namespace troupe
