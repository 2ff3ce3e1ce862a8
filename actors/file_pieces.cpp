#include "actors/file_pieces.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <vector>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/read_failure.hpp"
#include "base/to_size.hpp"
#include "base/whole_file.hpp"

namespace troupe {

shared_bytes read_file_piece(const std::filesystem::path& file, std::uint64_t offset) {
  const auto fail = [&] {
    throw read_failure(fmt::format("{}: cannot be read: {}", file.string(), std::strerror(errno)));
  };
  const file_descriptor source(::open(file.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));  // no pipe is waited for
  struct stat status {};
  if (!source.is_open() || ::fstat(source.number(), &status) != 0) fail();
  if (!S_ISREG(status.st_mode)) refuse("{}: is no file", file.string());
  const auto size = static_cast<std::uint64_t>(status.st_size);
  if (offset > size) refuse("{}: has {} bytes: there is nothing at {}", file.string(), size, offset);
  auto bytes = std::make_shared<std::vector<std::byte>>(std::min<std::uint64_t>(largest_piece, size - offset));
  const auto got = ::pread(source.number(), bytes->data(), bytes->size(), static_cast<off_t>(offset));
  if (got < 0) fail();
  bytes->resize(to_size(got));
  const std::span<const std::byte> read(*bytes);
  return {std::move(bytes), read};
}

incoming_file::incoming_file(std::filesystem::path path, std::uint64_t bytes)
    : path_(std::move(path)),
      file_(::open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600)),
      bytes_(bytes) {
  if (!file_.is_open()) fail_to_write(path_, errno);
}

void incoming_file::take(std::span<const std::byte> piece) {
  if (piece.empty() || piece.size() > bytes_ - offset_)
    refuse("{}: came with another length than was said", path_.string());
  if (!write_all(file_.number(), {reinterpret_cast<const char*>(piece.data()), piece.size()}))
    fail_to_write(path_, errno);
  offset_ += piece.size();
  if (is_whole() && !file_.close()) fail_to_write(path_, errno);
}

}  // namespace troupe
