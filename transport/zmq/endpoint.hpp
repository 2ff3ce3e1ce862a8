#pragma once
#include <string>
#include <vector>

#include "base/addresses.hpp"

namespace troupe::detail {

/// Throws input_error for anything but tcp://host:port and ipc://path.
void check_endpoint(const std::string& endpoint);
/// Whether its host is a name, which can have addresses of IPv4 and of IPv6.
bool names_a_host(const std::string& endpoint);
/// Whether it takes a socket for IPv6: an address of that kind, or every address of this machine.
bool is_for_ipv6(const std::string& endpoint);
/// Whether it can be reached from this machine alone.
bool is_loopback(const std::string& endpoint);
/// As libzmq wants to bind it: it knows no names of hosts.
std::string bindable(const std::string& endpoint);
/// Whether a process listens at an ipc:// path: libzmq would take its place without a word.
bool someone_listens(const std::string& ipc_endpoint);
/// What an endpoint stands for; nothing if its host cannot be looked up.
std::vector<socket_address> addresses_at(const std::string& endpoint);
/// The same as endpoints with numbers instead of a name, those of IPv4 first.
std::vector<std::string> numeric_endpoints(const std::string& named);

}  // namespace troupe::detail
