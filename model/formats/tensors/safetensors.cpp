#include "model/formats/tensors/safetensors.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <set>

#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/paths.hpp"
#include "base/to_size.hpp"
#include "model/formats/json_input.hpp"

static_assert(std::endian::native == std::endian::little, "the file formats here are little-endian");

namespace troupe {
namespace {

using nlohmann::json;

constexpr std::size_t length_bytes = sizeof(std::uint64_t);  // of the header's length, before it
constexpr std::size_t most_header_bytes = 100'000'000;
constexpr std::size_t most_dimensions = 8;

/// Types of the format that no weight of ours may have, with their bits: such a tensor is stepped over.
struct named_width {
  std::string_view name;
  std::int64_t bits;
};
constexpr std::array<named_width, 15> other_types = {{{"BOOL", 8},
                                                      {"I16", 16},
                                                      {"U16", 16},
                                                      {"U32", 32},
                                                      {"I64", 64},
                                                      {"U64", 64},
                                                      {"F64", 64},
                                                      {"C64", 64},
                                                      {"F8_E5M2", 8},
                                                      {"F8_E8M0", 8},
                                                      {"F8_E4M3FNUZ", 8},
                                                      {"F8_E5M2FNUZ", 8},
                                                      {"F6_E2M3", 6},
                                                      {"F6_E3M2", 6},
                                                      {"F4", 4}}};

/// A tensor as the header lists it, before its place is checked against its neighbours'.
struct entry {
  std::string name;
  std::string type;
  std::vector<std::int64_t> shape;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

std::string label(const std::string& where, const std::string& tensor) {
  return fmt::format("{}: tensor \"{}\"", where, tensor.substr(0, 200));
}

/// The type of a tensor that is read: any of ours but GGUF's blocks.
std::optional<dtype> read_type(std::string_view name) {
  const auto type = dtype_from_name(name);
  return type && block_of(*type).elements == 1 ? type : std::nullopt;
}

std::vector<std::int64_t> sizes_of(const json& list, const std::string& where, std::string_view field,
                                   std::size_t most) {
  if (!list.is_array() || list.size() > most)
    refuse("{}: \"{}\" should be a list of at most {} integers", where, field, most);
  std::vector<std::int64_t> sizes;
  for (const auto& element : list) {
    const auto size = detail::to_integer(element);
    if (!size || *size < 0) refuse("{}: \"{}\" should hold integers of 0 and more", where, field);
    sizes.push_back(*size);
  }
  return sizes;
}

entry read_entry(const std::string& name, const json& description, const std::string& where) {
  const detail::json_fields<json> fields(description, label(where, name));
  for (const auto& [key, value] : description.items())
    if (key != "dtype" && key != "shape" && key != "data_offsets")
      refuse("{}: has the unknown field \"{}\"", fields.where(), key.substr(0, 200));
  const auto type = fields.text("dtype");
  const auto *shape = fields.find("shape"), *offsets = fields.find("data_offsets");
  if (!type || !shape || !offsets) refuse("{}: lacks dtype, shape or data_offsets", fields.where());
  const auto range = sizes_of(*offsets, fields.where(), "data_offsets", 2);
  if (range.size() != 2 || range[0] > range[1])
    refuse("{}: \"data_offsets\" should be a begin and an end behind it", fields.where());
  return {.name = name,
          .type = *type,
          .shape = sizes_of(*shape, fields.where(), "shape", most_dimensions),
          .begin = static_cast<std::uint64_t>(range[0]),
          .end = static_cast<std::uint64_t>(range[1])};
}

std::size_t unread_bytes(const entry& tensor, std::int64_t bits, const std::string& where) {
  // A byte each is the bound that byte_size checks; what remains cannot overflow for a file that exists.
  const auto elements = byte_size(dtype::u8, tensor.shape, where);
  if (elements > std::uint64_t{1} << 56)
    refuse("{}: the shape {} is larger than any file", where, text_of(tensor.shape));
  return (elements * to_size(bits) + 7) / 8;
}

/// The bytes that type and shape ask for; an unknown type is refused.
std::size_t wanted_bytes(const entry& tensor, const std::string& where) {
  if (const auto type = read_type(tensor.type)) return byte_size(*type, tensor.shape, where);
  for (const auto& [name, bits] : other_types)
    if (name == tensor.type) return unread_bytes(tensor, bits, where);
  refuse("{}: has the unknown type \"{}\"", where, tensor.type.substr(0, 40));
}

void check_places(std::vector<entry>& entries, std::size_t data_bytes, const std::string& where) {
  std::stable_sort(entries.begin(), entries.end(), [](const entry& a, const entry& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  std::uint64_t at = 0;
  for (const auto& tensor : entries) {
    const auto name = label(where, tensor.name);
    if (tensor.begin < at) refuse("{}: overlaps the tensor before it (begins at {}, not {})", name, tensor.begin, at);
    if (tensor.begin > at) refuse("{}: leaves a hole before it (begins at {}, not {})", name, tensor.begin, at);
    if (tensor.end > data_bytes)
      refuse("{}: ends at byte {} of the data, but there are only {}: the file is cut off, copy it again", name,
             tensor.end, data_bytes);
    if (const auto wanted = wanted_bytes(tensor, name); wanted != tensor.end - tensor.begin)
      refuse("{}: {} of the shape {} takes {} bytes, but its offsets span {}", name, tensor.type, text_of(tensor.shape),
             wanted, tensor.end - tensor.begin);
    at = tensor.end;
  }
  if (at != data_bytes) refuse("{}: has {} bytes behind the last tensor", where, data_bytes - at);
}

void add_metadata(const json& object, const std::string& where, tensor_set& into) {
  if (!object.is_object()) refuse("{}: \"__metadata__\" should be an object of texts", where);
  for (const auto& [key, value] : object.items()) {
    if (!value.is_string()) refuse("{}: \"__metadata__\" should be an object of texts", where);
    into.metadata.emplace(key, value.get<std::string>());
  }
}

void add_tensor(entry&& tensor, std::span<const std::byte> data, const std::string& where, tensor_set& into) {
  if (into.tensors.contains(tensor.name) || into.unread.contains(tensor.name))
    refuse("{}: was there in an earlier file already", label(where, tensor.name));
  if (const auto type = read_type(tensor.type))
    into.tensors.emplace(std::move(tensor.name), tensor_view{*type, std::move(tensor.shape),
                                                             data.subspan(tensor.begin, tensor.end - tensor.begin)});
  else
    into.unread.emplace(std::move(tensor.name), std::move(tensor.type));
}

std::string_view header_text(std::span<const std::byte> bytes, const std::string& where) {
  if (bytes.size() < length_bytes) refuse("{}: is too short for a safetensors file", where);
  std::uint64_t length = 0;
  std::memcpy(&length, bytes.data(), length_bytes);
  if (length > most_header_bytes)
    refuse("{}: says that its header has {} bytes, at most {} are allowed: is it a safetensors file?", where, length,
           most_header_bytes);
  if (length > bytes.size() - length_bytes)
    refuse("{}: says that its header has {} bytes, but the file has only {}: it is cut off, copy it again", where,
           length, bytes.size());
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()) + length_bytes, length);
  if (!text.starts_with('{')) refuse("{}: its header is not a JSON object: is it a safetensors file?", where);
  return text;
}

void open_one(const std::filesystem::path& path, tensor_set& into) {
  const auto& file = into.files.emplace_back(path);
  parse_safetensors(file.bytes(), path.string(), into);
}

/// Shard names and the tensors that the index expects in each.
std::map<std::string, std::set<std::string>> read_index(const std::filesystem::path& path) {
  const auto index = detail::read_json(path, most_header_bytes);
  const detail::json_fields<json> fields(index, path.string());
  const auto* map = fields.find("weight_map");
  if (!map || !map->is_object() || map->empty())
    refuse("{}: \"weight_map\" should say which file holds which tensor", path.string());
  std::map<std::string, std::set<std::string>> shards;
  for (const auto& [tensor, file] : map->items()) {
    if (!file.is_string()) refuse("{}: \"weight_map\" should be an object of texts", path.string());
    const auto name = file.get<std::string>();
    if (name.empty() || name.find_first_of(std::string_view("/\\\0", 3)) != std::string::npos || name.starts_with('.'))
      refuse("{}: the shard \"{}\" is not a plain file name", path.string(), name.substr(0, 200));
    shards[name].insert(tensor);
  }
  return shards;
}

/// A tensor that no shard holds may be left over, as a head is where the embeddings are it: one that is needed is
/// missed by who reads it.
tensor_set open_shards(const std::filesystem::path& index) {
  const auto shards = read_index(index);
  const auto folder = index.parent_path();
  tensor_set all;
  for (const auto& shard : shards) open_one(folder / shard.first, all);
  for (const auto& [name, tensors] : shards) {
    const std::string path = (folder / name).string();
    for (const auto& tensor : tensors)
      if (const auto* view = all.find(tensor); view && all.file_of(*view) != path)
        refuse("{}: should hold the tensor \"{}\" by {}, but {} does", path, tensor.substr(0, 200),
               index.filename().string(), all.file_of(*view));
  }
  return all;
}

[[noreturn]] void refuse_without_weights(const std::filesystem::path& folder) {
  if (path_exists(folder / "pytorch_model.bin") || path_exists(folder / "pytorch_model.bin.index.json"))
    refuse("{}: has pickled weights only (pytorch_model.bin): save the model again as safetensors", folder.string());
  refuse("{}: has neither {} nor {}", folder.string(), model_weights_name, model_index_name);
}

}  // namespace

bool has_safetensors(const std::filesystem::path& folder) {
  return path_exists(folder / model_weights_name) || path_exists(folder / model_index_name);
}

void parse_safetensors(std::span<const std::byte> bytes, const std::string& where, tensor_set& into) {
  const auto text = header_text(bytes, where);
  const auto data = bytes.subspan(length_bytes + text.size());
  const auto header = detail::parse_json(text, where + ": header", {.depth = 4});
  std::vector<entry> entries;
  for (const auto& [name, description] : header.items()) {
    if (name == detail::safetensors_metadata_key)
      add_metadata(description, where, into);
    else
      entries.push_back(read_entry(name, description, where));
  }
  check_places(entries, data.size(), where);
  for (auto& tensor : entries) add_tensor(std::move(tensor), data, where, into);
}

tensor_set open_safetensors(const std::filesystem::path& path) {
  const bool is_one = !is_folder(path);
  if (!is_one && !has_safetensors(path)) refuse_without_weights(path);
  const std::filesystem::path weights = is_one ? path : path / model_weights_name;
  if (!is_one && !path_exists(weights)) return open_shards(path / model_index_name);
  tensor_set all;
  open_one(weights, all);
  return all;
}

}  // namespace troupe
