#include "base/file_descriptor.hpp"

#include <algorithm>
#include <cerrno>

#include <sys/resource.h>

#include "base/to_size.hpp"

namespace troupe {
namespace {

constexpr rlim_t many = 65'536;

rlimit open_files_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return {many, many};
  return limit;
}

}  // namespace

std::size_t most_open_files() {
  return open_files_limit().rlim_cur;
}

void allow_many_open_files() {
  rlimit limit = open_files_limit();
  const rlim_t wanted = std::min(many, limit.rlim_max);
  if (limit.rlim_cur >= wanted) return;
  limit.rlim_cur = wanted;
  (void)::setrlimit(RLIMIT_NOFILE, &limit);
}

bool write_all(int descriptor, std::string_view bytes) {
  while (!bytes.empty()) {
    const ::ssize_t written = ::write(descriptor, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written == 0) errno = ENOSPC;
    if (written <= 0) return false;
    bytes.remove_prefix(to_size(written));
  }
  return true;
}

}  // namespace troupe
