#pragma once
#include <string>
#include <string_view>

#include "base/host_port.hpp"

namespace troupe {

bool is_any_host(std::string_view host);  ///< all addresses of a machine

/// Whether a browser says it of a page: "https://chat.example.org", "http://localhost:3000". Upper case and a port that
/// the scheme has anyway are not what browsers say.
bool is_web_origin(std::string_view text);

std::string tcp_endpoint(const std::string& host, int port);
/// Where other machines reach what listens there on `host`: an address for all of a machine's becomes one of `host`.
std::string reachable_address(const std::string& listen, const std::string& host);  ///< host:port
std::string reachable_endpoint(const std::string& listen, const std::string& host);

}  // namespace troupe
