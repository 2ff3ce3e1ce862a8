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

void make_folder(const std::filesystem::path& folder);

}  // namespace troupe
