// Files that are there whole or not at all: written under another name, synced, renamed. What cannot be written throws
// runtime_error with the cause; then nothing of it stays.
#pragma once
#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>

namespace troupe {

enum class readable_by : std::uint8_t { everyone, owner };

void write_file(const std::filesystem::path& path, std::span<const std::string_view> parts,
                readable_by whom = readable_by::everyone);
void write_file(const std::filesystem::path& path, std::string_view text, readable_by whom = readable_by::everyone);

/// What processes have left there that died while they wrote: all, or those of one file. Nobody may be writing there
/// now.
void remove_partial_files(const std::filesystem::path& folder, std::string_view of = {});

/// For a file that grew by other means, and for a folder whose names must last.
void sync_file(const std::filesystem::path& path);

void make_folder(const std::filesystem::path& folder);

}  // namespace troupe
