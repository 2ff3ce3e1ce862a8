#include "actors/adapters/adapter_files.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <span>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.hpp"
#include "base/file_descriptor.hpp"
#include "base/mapped_file.hpp"
#include "base/paths.hpp"
#include "base/whole_file.hpp"

namespace troupe {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view incoming_prefix = ".incoming-";

class open_file {
 public:
  open_file(const fs::path& path, int flags) : path_(path), file_(::open(path.c_str(), flags | O_CLOEXEC, 0600)) {
    if (file_.is_open()) return;
    if ((flags & O_CREAT) != 0) fail_to_write(path_, errno);
    fail("opened");
  }

  [[noreturn]] void fail(const char* done) const {
    refuse("{}: cannot be {}: {}", path_.string(), done, std::strerror(errno));
  }
  off_t size() const {
    struct stat status {};
    if (::fstat(file_.number(), &status) != 0) fail("read");
    if (!S_ISREG(status.st_mode)) refuse("{}: is no file", path_.string());
    return status.st_size;
  }
  std::size_t read(std::span<std::byte> to, off_t at) const {
    const auto got = ::pread(file_.number(), to.data(), to.size(), at);
    if (got < 0) fail("read");
    return static_cast<std::size_t>(got);
  }
  void write(std::span<const std::byte> bytes) const {
    if (!write_all(file_.number(), {reinterpret_cast<const char*>(bytes.data()), bytes.size()}))
      fail_to_write(path_, errno);
  }
  void sync() const {
    if (::fsync(file_.number()) != 0) fail_to_write(path_, errno);
  }

 private:
  fs::path path_;
  file_descriptor file_;
};

/// Copies to the end of the file, whatever its size was at first. A pipe is refused: it is not waited for.
void copy_file(const fs::path& from, const fs::path& to, sha256& digest) {
  const open_file source(from, O_RDONLY | O_NONBLOCK), target(to, O_WRONLY | O_CREAT | O_EXCL);
  const off_t size = source.size();
  if (size > static_cast<off_t>(largest_adapter_file))
    refuse("{}: has {} bytes: no adapter is that large", from.string(), size);
  begin_adapter_file(digest, to.filename().string(), static_cast<std::uint64_t>(size));
  std::vector<std::byte> buffer(1 << 20);
  for (off_t at = 0; at < size;) {
    const std::size_t got = source.read(buffer, at);
    if (got == 0) refuse("{}: became shorter while it was read: publish it when it is complete", from.string());
    const auto piece = std::span(buffer).first(std::min<std::size_t>(got, static_cast<std::size_t>(size - at)));
    digest.add(piece);
    target.write(piece);
    at += static_cast<off_t>(piece.size());
  }
  target.sync();
}

}  // namespace

std::vector<adapter_file_info> adapter_files_in(const fs::path& folder) {
  std::vector<adapter_file_info> files;
  for (const std::string_view name : adapter_file_names) {
    std::error_code fault;
    const auto bytes = fs::file_size(folder / name, fault);
    if (fault) return {};
    files.push_back({std::string(name), bytes});
  }
  return files;
}

std::string digest_of_adapter(const fs::path& folder) {
  sha256 digest;
  for (const std::string_view name : adapter_file_names) {
    const mapped_file file(folder / name);
    begin_adapter_file(digest, name, file.bytes().size());
    digest.add(file.bytes());
  }
  return digest.finish();
}

incoming_adapter::incoming_adapter(const fs::path& store, std::uint64_t number)
    : path_(store / fmt::format("{}{}-{}", incoming_prefix, ::getpid(), number)) {
  make_folder(path_);
}

incoming_adapter::~incoming_adapter() {
  std::error_code ignored;
  if (!path_.empty()) fs::remove_all(path_, ignored);
}

std::string incoming_adapter::copy_from(const fs::path& folder) const {
  sha256 digest;
  for (const std::string_view name : adapter_file_names) {
    std::error_code fault;
    if (!fs::exists(folder / name, fault))
      refuse("{}: has no {}: an adapter as PEFT writes it is a folder with {} and {}", folder.string(), name,
             adapter_file_names[0], adapter_file_names[1]);
    copy_file(folder / name, path_ / name, digest);
  }
  return digest.finish();
}

void incoming_adapter::keep_as(const fs::path& name) {
  sync_file(path_);
  move_to(path_, name);
  path_.clear();
  sync_file(name.parent_path());
}

void remove_incoming_adapters(const fs::path& store) {
  std::error_code ignored;
  for (const fs::path& path : entries_of(store))
    if (path.filename().string().starts_with(incoming_prefix)) fs::remove_all(path, ignored);
}

}  // namespace troupe
