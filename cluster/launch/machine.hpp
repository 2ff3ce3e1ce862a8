#pragma once
#include <string>

namespace troupe {

/// How this machine calls itself; empty where it does not.
std::string machine_name();
/// The same for all processes of a machine until it boots again, whatever files call it. A container with a name of its
/// own is one of its own: its memory may be limited apart.
std::string machine_id();
/// Whether a host of the cluster's file is this machine: loopback, its name, or one of its addresses.
bool is_this_machine(const std::string& host);

}  // namespace troupe
