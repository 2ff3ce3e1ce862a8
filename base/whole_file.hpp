// Files that appear whole or not at all: written under another name, synced, renamed. If that fails, it throws
// write_failure with the cause and leaves nothing behind.
#pragma once
#include <cstdint>
#include <filesystem>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

#include "base/file_descriptor.hpp"

namespace troupe {

/// The disk is full, say: nothing is wrong with what was to be written, and once that is mended it can be written.
class write_failure : public std::runtime_error {
 public:
  write_failure(const std::string& text, bool is_of_full_disk)
      : std::runtime_error(text), is_of_full_disk_(is_of_full_disk) {}
  bool is_of_full_disk() const { return is_of_full_disk_; }

 private:
  bool is_of_full_disk_;
};

/// Throws it. `error`: as errno says; `otherwise`: what to do where the path cannot do.
[[noreturn]] void fail_to_write(const std::filesystem::path& path, int error,
                                std::string_view otherwise = "choose another folder");
/// The same for a path that the user chose: unless the disk is full, it throws input_error.
[[noreturn]] void refuse_to_write(const std::filesystem::path& path, int error,
                                  std::string_view otherwise = "choose another folder");

enum class readable_by : std::uint8_t { everyone, owner };

/// Opens a file for writing that was not there: what an earlier run left under that name is removed first, and a link
/// that somebody else has put there is not followed. Throws write_failure.
file_descriptor make_new_file(const std::filesystem::path& path, readable_by whom = readable_by::everyone);

void write_file(const std::filesystem::path& path, std::span<const std::string_view> parts,
                readable_by whom = readable_by::everyone, std::span<const std::filesystem::path> owned_like = {});
void write_file(const std::filesystem::path& path, std::string_view text, readable_by whom = readable_by::everyone,
                std::span<const std::filesystem::path> owned_like = {});
/// The same for one that the user chose: unless the disk is full, it throws input_error.
void write_chosen_file(const std::filesystem::path& path, std::string_view text);

/// For a process of root's, which makes what another user's process will read: gives an open file or folder to the
/// owner of the first of these paths that is there and not root's. Throws write_failure about `path`.
void give_to_owner_of(std::span<const std::filesystem::path> owned_like, const file_descriptor& opened,
                      const std::filesystem::path& path);

/// Removes what processes left behind that died while they wrote: in the whole folder, or of one file. Nobody may be
/// writing there now.
void remove_partial_files(const std::filesystem::path& folder, std::string_view file_name = {});

/// Gives a file or folder its final name.
void move_to(const std::filesystem::path& from, const std::filesystem::path& to);

/// Brings to the disk a file that was written in another way, or a folder's list of names.
void sync_file(const std::filesystem::path& path);

void make_folder(const std::filesystem::path& folder);
/// The same for one that the user chose.
void make_chosen_folder(const std::filesystem::path& folder);
/// The same; what was not there is its owner's alone.
void make_private_folder(const std::filesystem::path& folder);

}  // namespace troupe
