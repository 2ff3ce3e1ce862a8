#pragma once
#include <cstdint>
#include <fstream>

#include <unistd.h>

namespace troupe {

/// Resident memory of this process; 0 where the system does not tell.
inline std::uint64_t resident_bytes() {
  std::ifstream statm("/proc/self/statm");  // counts pages
  std::uint64_t all = 0, resident = 0;
  statm >> all >> resident;
  return resident * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

}  // namespace troupe
