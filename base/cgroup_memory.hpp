#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>

namespace troupe {

/// Bytes that this process's control groups (a container's, a service's, a job's) leave free, that of version 2 or the
/// memory controller of version 1, and those above; nothing where none has a limit.
std::optional<std::int64_t> free_in_cgroups(const std::filesystem::path& mounted = "/sys/fs/cgroup",
                                            const std::filesystem::path& own = "/proc/self/cgroup");

/// Bytes that they allow in all, the least of their limits.
std::optional<std::int64_t> limit_of_cgroups(const std::filesystem::path& mounted = "/sys/fs/cgroup",
                                             const std::filesystem::path& own = "/proc/self/cgroup");

}  // namespace troupe
