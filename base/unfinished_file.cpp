#include "base/unfinished_file.hpp"

#include <cerrno>
#include <string>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/entropy.hpp"
#include "base/paths.hpp"
#include "base/whole_file.hpp"

namespace troupe {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view unfinished_ending = ".partial";

void remove_if_abandoned(const fs::path& path) {
  const file_descriptor file(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (!file.is_open()) return;
  std::error_code ignored;
  if (::flock(file.number(), LOCK_EX | LOCK_NB) == 0) fs::remove(path, ignored);
}

void remove_abandoned(const fs::path& final_path) {
  const std::string beginning = final_path.filename().string() + ".";
  for (const fs::path& each : entries_of(final_path.parent_path())) {
    const std::string name = each.filename().string();
    if (name.starts_with(beginning) && name.ends_with(unfinished_ending)) remove_if_abandoned(each);
  }
}

/// A process that removes abandoned files may have removed this one before we had the lock.
bool is_still_there(const file_descriptor& file) {
  struct stat status {};
  return ::fstat(file.number(), &status) == 0 && status.st_nlink > 0;
}

}  // namespace

unfinished_file::unfinished_file(fs::path final_path) : final_path_(std::move(final_path)) {
  remove_abandoned(final_path_);
  for (int tries = 16; tries > 0 && !open_new();) --tries;
}

/// False if another name must be tried. A process id would not do as a name, since each container counts its own.
bool unfinished_file::open_new() {
  path_ = final_path_.string() + fmt::format(".{}{}", random_hex(8), unfinished_ending);
  file_descriptor created(::open(path_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  if (!created.is_open()) return errno != EEXIST;
  (void)::flock(created.number(), LOCK_EX);  // on a file system without locks, nobody removes anything either
  if (!is_still_there(created)) return false;
  file_ = std::move(created);
  return true;
}

unfinished_file::~unfinished_file() {
  if (!file_.is_open() || path_.empty()) return;
  std::error_code ignored;
  fs::remove(path_, ignored);
}

void unfinished_file::finish(std::string_view remedy) {
  if (::fsync(file_.number()) != 0) fail_to_write(path_, errno, remedy);
  move_to(path_, final_path_);
  path_.clear();
}

}  // namespace troupe
