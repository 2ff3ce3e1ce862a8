#pragma once
#include <string>

namespace troupe::detail {

/// Throws input_error for anything but tcp://host:port and ipc://path.
void check_endpoint(const std::string& endpoint);
/// As libzmq wants to bind it: it knows no names of hosts.
std::string bindable(const std::string& endpoint);
/// Whether a process listens at an ipc:// path: libzmq would take its place without a word.
bool someone_listens(const std::string& ipc_endpoint);

}  // namespace troupe::detail
