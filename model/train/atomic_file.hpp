#pragma once
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include "model/formats/safetensors.hpp"

namespace troupe {

/// A file that is there whole or not at all: written under another name, synced, renamed. Throws runtime_error with the
/// cause where the disk is full or the folder cannot be written; then nothing of it stays.
void write_file(const std::filesystem::path& path, std::span<const std::string_view> parts);
void write_file(const std::filesystem::path& path, std::string_view text);

/// The same for a safetensors file; `data` lies parallel to `tensors`.
void write_tensors(const std::filesystem::path& path, std::span<const tensor_description> tensors,
                   std::span<const std::span<const float>> data, const std::map<std::string, std::string>& metadata);

void make_folder(const std::filesystem::path& folder);

}  // namespace troupe
