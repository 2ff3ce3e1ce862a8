#include "base/cgroup_memory.hpp"

#include <algorithm>
#include <array>
#include <fstream>
#include <string>
#include <string_view>

namespace troupe {
namespace {

namespace fs = std::filesystem;

/// How a version of control groups calls what it says of memory.
struct cgroup_files {
  const char *limit, *used;
  std::array<std::string_view, 2> pages_of_files;
};
constexpr cgroup_files version_1{
    "memory.limit_in_bytes", "memory.usage_in_bytes", {"total_inactive_file", "total_active_file"}};
constexpr cgroup_files version_2{"memory.max", "memory.current", {"inactive_file", "active_file"}};

/// Nothing where there is no such file, or "max" in it.
std::optional<std::int64_t> bytes_in(const fs::path& path) {
  std::ifstream file(path);
  std::int64_t bytes = 0;
  return file >> bytes ? std::optional(bytes) : std::nullopt;
}

/// Cached pages of files count as used, but go when room is needed. Mapped ones are among them, as in the machine's
/// own figure.
std::int64_t pages_of_files(const fs::path& folder, const cgroup_files& names) {
  std::ifstream file(folder / "memory.stat");
  std::int64_t sum = 0, bytes = 0;
  for (std::string key; file >> key >> bytes;)
    if (std::find(names.pages_of_files.begin(), names.pages_of_files.end(), key) != names.pages_of_files.end())
      sum += bytes;
  return sum;
}

std::optional<std::int64_t> free_in(const fs::path& folder, const cgroup_files& names) {
  const auto limit = bytes_in(folder / names.limit), used = bytes_in(folder / names.used);
  if (!limit || !used) return std::nullopt;
  // The figure of pages lags behind: of files that were just removed there may be more than is used in all.
  return std::max<std::int64_t>(*limit - std::max<std::int64_t>(*used - pages_of_files(folder, names), 0), 0);
}

std::optional<std::int64_t> limit_in(const fs::path& folder, const cgroup_files& names) {
  return bytes_in(folder / names.limit);
}

using figure = std::optional<std::int64_t>(const fs::path& folder, const cgroup_files& names);

/// Inside a container the path may be the host's. Its parts that the container cannot see have no files here, and the
/// limit is in the top folder.
std::optional<std::int64_t> least_of(figure& read, fs::path at, const fs::path& below, const cgroup_files& names) {
  std::optional<std::int64_t> least = read(at, names);
  for (const fs::path& part : below.relative_path()) {
    if (part == "..") break;
    const auto here = read(at /= part, names);
    if (here) least = std::min(least.value_or(*here), *here);
  }
  return least;
}

bool names_memory(const std::string& controllers) {
  return ("," + controllers + ",").find(",memory,") != std::string::npos;
}

std::optional<std::int64_t> least_in_groups(figure& read, const fs::path& mounted, const fs::path& own) {
  std::optional<std::int64_t> least;
  std::ifstream file(own);
  for (std::string line; std::getline(file, line);) {  // "4:memory:/path", or "0::/path" for version 2
    const auto first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1), below = line.substr(second + 1);
    if (!controllers.empty() && !names_memory(controllers)) continue;
    const auto here = controllers.empty() ? least_of(read, mounted, below, version_2)
                                          : least_of(read, mounted / "memory", below, version_1);
    if (here) least = std::min(least.value_or(*here), *here);
  }
  return least;
}

}  // namespace

std::optional<std::int64_t> free_in_cgroups(const fs::path& mounted, const fs::path& own) {
  return least_in_groups(free_in, mounted, own);
}

std::optional<std::int64_t> limit_of_cgroups(const fs::path& mounted, const fs::path& own) {
  return least_in_groups(limit_in, mounted, own);
}

}  // namespace troupe
