#pragma once
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/formats/tensors/tensor.hpp"

namespace troupe {

namespace detail {
constexpr std::string_view safetensors_metadata_key = "__metadata__";
}

/// A folder's weights, or the list of the files that they are in.
inline constexpr std::string_view model_weights_name = "model.safetensors";
inline constexpr std::string_view model_index_name = "model.safetensors.index.json";
/// Whether a folder has either.
bool has_safetensors(const std::filesystem::path& folder);

/// Opens one .safetensors file, or a folder with model.safetensors or model.safetensors.index.json and its shards.
/// Every header is checked: length, JSON, known types, offsets in order without hole or overlap, no name twice.
tensor_set open_safetensors(const std::filesystem::path& path);

/// Reads a file's header into `into`; the views point into `bytes`. `where` is the file's name for messages.
void parse_safetensors(std::span<const std::byte> bytes, const std::string& where, tensor_set& into);

/// A header for tensors that follow in this order, padded with spaces so that the first tensor starts at a multiple of
/// 64 from the file's start. It includes the leading u64 length. Sizes come from byte_size.
struct tensor_description {
  std::string name;
  dtype type;
  std::vector<std::int64_t> shape;
};
std::string safetensors_header(std::span<const tensor_description> tensors,
                               const std::map<std::string, std::string>& metadata);

/// The file is there whole or not at all (base/whole_file.hpp); `data` lies parallel to `tensors`.
void write_safetensors(const std::filesystem::path& path, std::span<const tensor_description> tensors,
                       std::span<const std::span<const std::byte>> data,
                       const std::map<std::string, std::string>& metadata);
void write_safetensors(const std::filesystem::path& path, std::span<const tensor_description> tensors,
                       std::span<const std::vector<float>> data, const std::map<std::string, std::string>& metadata);

}  // namespace troupe
