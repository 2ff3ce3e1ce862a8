#include "model/arch/unfinished_file.hpp"

#include <cerrno>
#include <cstring>
#include <random>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace troupe {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view unfinished_ending = ".partial";

void remove_if_abandoned(const fs::path& path) {
  const int descriptor = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (descriptor < 0) return;
  std::error_code ignored;
  if (::flock(descriptor, LOCK_EX | LOCK_NB) == 0) fs::remove(path, ignored);
  ::close(descriptor);
}

void remove_abandoned(const fs::path& final_path) {
  const std::string beginning = final_path.filename().string() + ".";
  std::error_code fault;
  for (fs::directory_iterator each(final_path.parent_path(), fault), end; !fault && each != end;
       each.increment(fault)) {
    const std::string name = each->path().filename().string();
    if (name.starts_with(beginning) && name.ends_with(unfinished_ending)) remove_if_abandoned(each->path());
  }
}

/// A process that removes abandoned files may have removed this one before we had the lock.
bool is_still_there(int descriptor) {
  struct stat status {};
  return ::fstat(descriptor, &status) == 0 && status.st_nlink > 0;
}

}  // namespace

unfinished_file::unfinished_file(fs::path final_path) : final_path_(std::move(final_path)) {
  remove_abandoned(final_path_);
  for (int tries = 16; tries > 0 && !open_new();) --tries;
}

/// False if another name must be tried. A process id would not do as a name, since each container counts its own.
bool unfinished_file::open_new() {
  path_ = final_path_.string() + fmt::format(".{:08x}{}", std::random_device()(), unfinished_ending);
  const int descriptor = ::open(path_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (descriptor < 0) return errno != EEXIST;
  (void)::flock(descriptor, LOCK_EX);  // on a file system without locks, nobody removes anything either
  if (!is_still_there(descriptor)) return ::close(descriptor), false;
  descriptor_ = descriptor;
  return true;
}

unfinished_file::~unfinished_file() {
  if (descriptor_ < 0) return;
  std::error_code ignored;
  if (!path_.empty()) fs::remove(path_, ignored);
  ::close(descriptor_);
}

void unfinished_file::finish() {
  if (::fsync(descriptor_) != 0)
    throw std::runtime_error(fmt::format("{}: cannot be written ({}): free some space, or set TROUPE_CACHE elsewhere",
                                         path_.string(), std::strerror(errno)));
  fs::rename(path_, final_path_);
  path_.clear();
}

}  // namespace troupe
