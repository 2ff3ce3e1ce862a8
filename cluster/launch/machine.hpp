#pragma once
#include <string>

#include "base/host_port.hpp"

namespace troupe {

/// The name of this machine; empty if it has none.
std::string machine_name();
/// The same for all processes of a machine until it boots again, whatever the cluster's files call it. A container with
/// a name of its own counts as a machine, since its memory may be limited separately.
std::string machine_id();
/// Where a process id names one process: the machine_id() and the pid namespace, since containers have their own ids.
std::string pid_space();
/// The machine_id() of a pid_space().
std::string machine_of(const std::string& pid_space);
/// Whether a host of the cluster's file is this machine: a loopback, its name, one of its addresses, or a name that
/// stands for nothing but those. A name that cannot be looked up within two seconds is another machine's. Each name is
/// looked up once. Not for several threads at a time.
bool is_this_machine(const std::string& host);
/// Whether a process listens at this address of this machine. False also where there is no such address.
bool is_port_taken(const host_port& place);

}  // namespace troupe
