#include <set>

#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/rounding.hpp"
#include "base/whole_file.hpp"
#include "model/formats/tensors/safetensors.hpp"

namespace troupe {
namespace {

using nlohmann::json;

constexpr std::size_t header_alignment = 64;

}  // namespace

std::string safetensors_header(std::span<const tensor_description> tensors,
                               const std::map<std::string, std::string>& metadata) {
  std::set<std::string_view> names;
  std::string text = "{";
  const auto append = [&](const std::string& name, const nlohmann::ordered_json& value) {
    text += fmt::format("{}{}:{}", text.size() > 1 ? "," : "", json(name).dump(), value.dump());
  };
  try {
    if (!metadata.empty()) append(std::string(detail::safetensors_metadata_key), metadata);
    std::uint64_t at = 0;
    for (const auto& tensor : tensors) {
      const bool blocks = block_of(tensor.type).elements > 1;
      if (blocks || tensor.name == detail::safetensors_metadata_key || !names.insert(tensor.name).second)
        refuse("tensor \"{}\" of the type {} cannot be written to a safetensors file", tensor.name,
               name_of(tensor.type));
      const auto end = at + byte_size(tensor.type, tensor.shape, tensor.name);
      append(tensor.name, {{"dtype", name_of(tensor.type)}, {"shape", tensor.shape}, {"data_offsets", {at, end}}});
      at = end;
    }
  } catch (const json::exception& error) {
    refuse("a safetensors header cannot be written: {}", error.what());
  }
  text += "}";
  const auto least = sizeof(std::uint64_t) + text.size();
  const std::uint64_t length = rounded_up(least, header_alignment) - sizeof length;
  text.resize(length, ' ');
  return std::string(reinterpret_cast<const char*>(&length), sizeof length) + text;
}

void write_safetensors(const std::filesystem::path& path, std::span<const tensor_description> tensors,
                       std::span<const std::span<const std::byte>> data,
                       const std::map<std::string, std::string>& metadata) {
  if (data.size() != tensors.size())
    refuse("{}: {} tensors, but data for {}", path.string(), tensors.size(), data.size());
  for (std::size_t i = 0; i < data.size(); ++i)
    if (data[i].size() != byte_size(tensors[i].type, tensors[i].shape, tensors[i].name))
      refuse("{}: tensor \"{}\" has {} bytes of data", path.string(), tensors[i].name, data[i].size());
  const std::string header = safetensors_header(tensors, metadata);
  std::vector<std::string_view> parts{header};
  for (const auto& each : data) parts.emplace_back(reinterpret_cast<const char*>(each.data()), each.size());
  write_file(path, parts);
}

void write_safetensors(const std::filesystem::path& path, std::span<const tensor_description> tensors,
                       std::span<const std::vector<float>> data, const std::map<std::string, std::string>& metadata) {
  std::vector<std::span<const std::byte>> bytes;
  for (const auto& each : data) bytes.push_back(std::as_bytes(std::span(each)));
  write_safetensors(path, tensors, bytes, metadata);
}

}  // namespace troupe
