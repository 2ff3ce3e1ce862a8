#include "cli/twice_read.hpp"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "base/error.hpp"
#include "base/paths.hpp"

namespace troupe {

std::ifstream open_to_read_twice(const std::string& path, std::string_view hint) {
  if (is_folder(path)) refuse("{}: is a folder: {}", path, hint);
  std::error_code ignored;
  if (path == "-" || (path_exists(path) && !std::filesystem::is_regular_file(path, ignored)))
    refuse("{}: is no regular file, and is read twice: save it first", path);
  std::ifstream in(path, std::ios::binary);
  if (!in) refuse("{}: cannot be read: {}: check the path and its permissions", path, std::strerror(errno));
  return in;
}

}  // namespace troupe
