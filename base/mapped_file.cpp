#include "base/mapped_file.hpp"

#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.hpp"
#include "base/file_descriptor.hpp"
#include "base/read_failure.hpp"
#include "base/rounding.hpp"
#include "base/to_size.hpp"

namespace troupe {
namespace {

/// What lies in the place of a large file where a repository was cloned without Git LFS.
bool is_lfs_pointer(int descriptor) {
  constexpr std::string_view beginning = "version https://git-lfs.github.com/spec/";
  std::array<char, beginning.size()> read{};
  return ::pread(descriptor, read.data(), read.size(), 0) == static_cast<ssize_t>(read.size()) &&
         std::string_view(read.data(), read.size()) == beginning;
}

}  // namespace

mapped_file::mapped_file(const std::filesystem::path& path) {
  const file_descriptor file(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));  // a pipe is not waited for
  if (!file.is_open())
    throw read_failure(fmt::format("{}: cannot be opened ({}): check the path and its permissions", path.string(),
                                   std::strerror(errno)));
  *this = mapped_file(file.number(), path.string());
}

mapped_file::mapped_file(int descriptor, std::string name) : name_(std::move(name)) {
  struct stat status {};
  if (::fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode))
    refuse("{}: is not a regular file: give a file", name_);
  if (status.st_size == 0) refuse("{}: is empty: copy or download it again", name_);
  if (is_lfs_pointer(descriptor))
    refuse("{}: is Git LFS's pointer to the file, not the file: type git lfs pull in its repository", name_);
  size_ = to_size(status.st_size);
  void* data = ::mmap(nullptr, size_, PROT_READ, MAP_SHARED, descriptor, 0);
  if (data == MAP_FAILED) throw read_failure(fmt::format("{}: cannot be mapped ({})", name_, std::strerror(errno)));
  data_ = static_cast<const std::byte*>(data);
}

mapped_file::mapped_file(mapped_file&& other) noexcept {
  *this = std::move(other);
}

mapped_file& mapped_file::operator=(mapped_file&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  std::swap(name_, other.name_);
  return *this;
}

mapped_file::~mapped_file() {
  if (data_) ::munmap(const_cast<std::byte*>(data_), size_);
}

void mapped_file::preload(std::span<const std::byte> part) {
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto first = reinterpret_cast<std::uintptr_t>(part.data()) / page * page;
  const auto last = rounded_up(reinterpret_cast<std::uintptr_t>(part.data() + part.size()), page);
  ::madvise(reinterpret_cast<void*>(first), last - first, MADV_POPULATE_READ);
}

void mapped_file::release(std::span<const std::byte> part) {
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto first = rounded_up(reinterpret_cast<std::uintptr_t>(part.data()), page);
  const auto last = reinterpret_cast<std::uintptr_t>(part.data() + part.size()) / page * page;
  if (first < last) ::madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED);
}

}  // namespace troupe
