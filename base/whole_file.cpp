#include "base/whole_file.hpp"

#include <cerrno>
#include <fstream>
#include <string>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.hpp"
#include "base/paths.hpp"

namespace troupe {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view partial_ending = ".partial";

/// Not open where it cannot be made: errno says why.
file_descriptor open_new_file(const fs::path& path, readable_by whom) {
  const ::mode_t mode = whom == readable_by::owner ? 0600 : 0644;
  ::unlink(path.c_str());
  return file_descriptor(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode));  // follows no link
}

/// Open for writing under a name of its own; removed unless it got that which was asked for, the only one that errors
/// name.
class partial_file {
 public:
  partial_file(fs::path path, readable_by whom)
      : path_(std::move(path)),
        partial_(path_.string() + fmt::format(".{}{}", ::getpid(), partial_ending)),
        file_(open_new_file(partial_, whom)) {
    if (!file_.is_open()) fail_to_write(path_, errno);
  }
  ~partial_file() {
    if (!kept_) ::unlink(partial_.c_str());
  }
  partial_file(const partial_file&) = delete;
  partial_file& operator=(const partial_file&) = delete;

  void append(std::string_view bytes) {
    if (!write_all(file_.number(), bytes)) fail_to_write(path_, errno);
  }
  void give_to_owner_of(std::span<const fs::path> owned_like) { troupe::give_to_owner_of(owned_like, file_, path_); }
  void publish() {
    if (::fsync(file_.number()) != 0 || !file_.close() || ::rename(partial_.c_str(), path_.c_str()) != 0)
      fail_to_write(path_, errno);
    kept_ = true;
  }

 private:
  fs::path path_, partial_;
  file_descriptor file_;
  bool kept_ = false;
};

/// Without this the machine could lose the file's new name when it crashes.
void sync_folder(const fs::path& folder) {
  const file_descriptor opened(::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (opened.is_open()) ::fsync(opened.number());
}

/// For a device or a pipe, which no renamed file can replace.
void write_into(const fs::path& path, std::span<const std::string_view> parts) {
  std::ofstream file(path, std::ios::binary);
  for (const std::string_view part : parts) file.write(part.data(), static_cast<std::streamsize>(part.size()));
  if (!file.flush()) fail_to_write(path, errno, "choose another file");
}

bool is_of_full_disk(int error) {
  return error == ENOSPC || error == EDQUOT || error == EFBIG;
}

std::string failure_text(const fs::path& path, int error, std::string_view otherwise) {
  return fmt::format("{}: cannot be written ({}): {}, or {}", path.string(), std::generic_category().message(error),
                     is_of_full_disk(error) ? "free some space" : "check the path and its permissions", otherwise);
}

}  // namespace

void fail_to_write(const fs::path& path, int error, std::string_view otherwise) {
  throw write_failure(failure_text(path, error, otherwise), is_of_full_disk(error));
}

void refuse_to_write(const fs::path& path, int error, std::string_view otherwise) {
  if (is_of_full_disk(error)) fail_to_write(path, error, otherwise);
  throw input_error(failure_text(path, error, otherwise));
}

file_descriptor make_new_file(const fs::path& path, readable_by whom) {
  file_descriptor file = open_new_file(path, whom);
  if (!file.is_open()) fail_to_write(path, errno);
  return file;
}

void write_file(const fs::path& path, std::span<const std::string_view> parts, readable_by whom,
                std::span<const fs::path> owned_like) {
  std::error_code fault;
  if (fs::exists(path, fault) && !fs::is_regular_file(path, fault)) return write_into(path, parts);
  partial_file file(path, whom);
  for (const std::string_view part : parts) file.append(part);
  file.give_to_owner_of(owned_like);
  file.publish();
  sync_folder(path.parent_path());
}

void write_file(const fs::path& path, std::string_view text, readable_by whom, std::span<const fs::path> owned_like) {
  write_file(path, std::span(&text, 1), whom, owned_like);
}

void write_chosen_file(const fs::path& path, std::string_view text) {
  try {
    write_file(path, text);
  } catch (const write_failure& failure) {
    if (failure.is_of_full_disk()) throw;
    throw input_error(failure.what());
  }
}

void give_to_owner_of(std::span<const fs::path> owned_like, const file_descriptor& opened, const fs::path& path) {
  if (::geteuid() != 0) return;
  for (const fs::path& each : owned_like) {
    struct stat like {};
    if (::stat(each.c_str(), &like) != 0 || like.st_uid == 0) continue;
    if (::fchown(opened.number(), like.st_uid, like.st_gid) != 0)
      fail_to_write(path, errno, fmt::format("type this as the user with the number {}", like.st_uid));
    return;
  }
}

void remove_partial_files(const fs::path& folder, std::string_view file_name) {
  std::error_code ignored;
  for (const fs::path& path : entries_of(folder))
    if (path.extension() == partial_ending && path.filename().string().starts_with(file_name))
      fs::remove(path, ignored);
}

void move_to(const fs::path& from, const fs::path& to) {
  std::error_code fault;
  fs::rename(from, to, fault);
  if (fault) fail_to_write(to, fault.value());
}

void sync_file(const fs::path& path) {
  const file_descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.is_open() || ::fsync(file.number()) != 0) fail_to_write(path, errno);
}

void make_folder(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) fail_to_write(folder, error.value());
}

void make_chosen_folder(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) refuse_to_write(folder, error.value());
}

void make_private_folder(const fs::path& folder) {
  std::error_code ignored;
  if (folder.empty() || fs::is_directory(folder, ignored)) return;
  make_private_folder(folder.parent_path());
  if (::mkdir(folder.c_str(), S_IRWXU) != 0 && errno != EEXIST) fail_to_write(folder, errno);
  if (!fs::is_directory(folder, ignored)) fail_to_write(folder, ENOTDIR);
}

}  // namespace troupe
