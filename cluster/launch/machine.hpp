#pragma once
#include <cstddef>
#include <string>

#include "cluster/config/config_address.hpp"

namespace troupe {

/// The name of this machine; empty if it has none.
std::string machine_name();
/// The same for all processes of a machine until it boots again, whatever the cluster's files call it. A container with
/// a name of its own counts as a machine, since its memory may be limited separately.
std::string machine_id();
/// Whether a host of the cluster's file is this machine: a loopback, its name, or one of its addresses.
bool is_this_machine(const std::string& host);
/// Whether a process listens at this address of this machine. False also where there is no such address.
bool is_port_taken(const host_port& place);
/// How many files this process may have open. Raises the usual limit, which is low for a server, to what the system
/// allows.
std::size_t raise_open_files();

}  // namespace troupe
