#include "model/formats/gguf/gguf.hpp"

#include <algorithm>
#include <array>
#include <bit>

#include "base/error.hpp"
#include "base/rounding.hpp"
#include "model/formats/gguf/gguf_reader.hpp"

namespace troupe {
namespace {

using detail::gguf_reader;
using detail::most_gguf_metadata_bytes;

constexpr std::uint64_t most_keys = 1 << 16;
constexpr std::uint64_t most_tensors = 1 << 20;
constexpr std::uint64_t most_key_bytes = 1 << 16;
constexpr std::uint64_t most_gguf_dimensions = 4;
constexpr std::uint64_t most_alignment = 1 << 16;

constexpr std::array<std::string_view, 42> tensor_type_names = {
    "F32",        "F16",        "Q4_0",       "Q4_1",  "Q4_2",     "Q4_3",     "Q5_0",     "Q5_1",    "Q8_0",
    "Q8_1",       "Q2_K",       "Q3_K",       "Q4_K",  "Q5_K",     "Q6_K",     "Q8_K",     "IQ2_XXS", "IQ2_XS",
    "IQ3_XXS",    "IQ1_S",      "IQ4_NL",     "IQ3_S", "IQ2_S",    "IQ4_XS",   "I8",       "I16",     "I32",
    "I64",        "F64",        "IQ1_M",      "BF16",  "Q4_0_4_4", "Q4_0_4_8", "Q4_0_8_8", "TQ1_0",   "TQ2_0",
    "IQ4_NL_4_4", "IQ4_NL_4_8", "IQ4_NL_8_8", "MXFP4", "NVFP4",    "Q1_0"};

std::string label(std::string_view key) {
  return fmt::format("\"{}\"", key.substr(0, 200));
}

void check_version(gguf_reader& from, const gguf_file& into) {
  if (from.left() < 24) refuse("{}: is too short for a GGUF file", into.name);
  if (from.number<std::uint32_t>("the magic") != 0x46554747) refuse("{}: does not begin with \"GGUF\"", into.name);
  const auto version = from.number<std::uint32_t>("the version");
  if (version == 2 || version == 3) return;
  if ((version & 0xffff) == 0) refuse("{}: is big-endian: convert it to a little-endian GGUF file", into.name);
  refuse("{}: has the GGUF version {}, but 2 and 3 are supported: convert the model again", into.name, version);
}

void read_metadata(gguf_reader& from, std::uint64_t count, gguf_file& into) {
  for (std::uint64_t i = 0; i < count; ++i) {
    auto key = from.text(most_key_bytes, "a metadata key");
    auto value = from.value(label(key));
    if (!into.metadata.emplace(key, std::move(value)).second) refuse("{}: has the key {} twice", into.name, label(key));
  }
}

dtype tensor_type(std::uint32_t number, const std::string& name) {
  if (number < tensor_type_names.size())
    if (const auto type = dtype_from_name(tensor_type_names[number])) return *type;
  const auto type = number < tensor_type_names.size() ? std::string(tensor_type_names[number])
                                                      : fmt::format("with the number {}", number);
  refuse(
      "{}: has the type {}, but F32, F16, BF16, Q4_0 to Q8_0, Q2_K to Q6_K, IQ4_NL, IQ4_XS and MXFP4 are supported: "
      "convert the model to one of these",
      name, type);
}

struct placed_tensor {
  std::string name;
  tensor_view view;
  std::uint64_t begin = 0;
  std::uint64_t size = 0;
};

placed_tensor read_tensor_info(gguf_reader& from, const std::string& where) {
  placed_tensor tensor;
  tensor.name = from.text(most_key_bytes, "a tensor's name");
  const auto name = fmt::format("{}: tensor {}", where, label(tensor.name));
  const auto dimensions = from.number<std::uint32_t>(name);
  if (dimensions < 1 || dimensions > most_gguf_dimensions)
    refuse("{}: has {} dimensions, but 1 to {} are possible", name, dimensions, most_gguf_dimensions);
  for (std::uint32_t i = 0; i < dimensions; ++i) tensor.view.shape.push_back(from.number<std::int64_t>(name));
  std::reverse(tensor.view.shape.begin(), tensor.view.shape.end());
  tensor.view.type = tensor_type(from.number<std::uint32_t>(name), name);
  tensor.begin = from.number<std::uint64_t>(name);
  tensor.size = byte_size(tensor.view.type, tensor.view.shape, name);
  return tensor;
}

std::uint64_t alignment_of(const gguf_file& file) {
  const auto alignment = file.get<std::int64_t>("general.alignment").value_or(32);
  if (alignment < 1 || alignment > static_cast<std::int64_t>(most_alignment) ||
      !std::has_single_bit(static_cast<std::uint64_t>(alignment)))
    refuse("{}: \"general.alignment\" is {}, but should be a power of two up to {}", file.name, alignment,
           most_alignment);
  return static_cast<std::uint64_t>(alignment);
}

void place_tensors(std::vector<placed_tensor>& tensors, std::span<const std::byte> data, std::uint64_t alignment,
                   gguf_file& into) {
  std::stable_sort(tensors.begin(), tensors.end(), [](const auto& a, const auto& b) { return a.begin < b.begin; });
  std::uint64_t at = 0;
  for (auto& tensor : tensors) {
    const auto name = fmt::format("{}: tensor {}", into.name, label(tensor.name));
    if (tensor.begin % alignment != 0) refuse("{}: begins at {}, no multiple of {}", name, tensor.begin, alignment);
    if (tensor.begin < at) refuse("{}: overlaps the tensor before it (begins at {}, not {})", name, tensor.begin, at);
    if (tensor.size > data.size() || tensor.begin > data.size() - tensor.size)
      refuse(
          "{}: takes {} bytes from byte {} of the data on, but there are only {}: the file is cut off, copy it again",
          name, tensor.size, tensor.begin, data.size());
    at = tensor.begin + tensor.size;
    tensor.view.data = data.subspan(tensor.begin, tensor.size);
    if (!into.tensors.tensors.emplace(std::move(tensor.name), std::move(tensor.view)).second)
      refuse("{}: is there twice", name);
  }
}

/// In the order of gguf_value.
constexpr std::array<std::string_view, std::variant_size_v<gguf_value>> value_names = {"an integer",
                                                                                       "a float",
                                                                                       "true or false",
                                                                                       "a text",
                                                                                       "a list of integers",
                                                                                       "a list of floats",
                                                                                       "a list of true and false",
                                                                                       "a list of texts"};

}  // namespace

template <class T>
const T* gguf_file::find(std::string_view key) const {
  const auto found = metadata.find(key);
  if (found == metadata.end()) return nullptr;
  if (const auto* value = std::get_if<T>(&found->second)) return value;
  refuse("{}: {} should be {}, but is {}", name, label(key), value_names[gguf_value(T()).index()],
         value_names[found->second.index()]);
}

template const std::int64_t* gguf_file::find(std::string_view) const;
template const double* gguf_file::find(std::string_view) const;
template const bool* gguf_file::find(std::string_view) const;
template const std::string* gguf_file::find(std::string_view) const;
template const std::vector<std::int64_t>* gguf_file::find(std::string_view) const;
template const std::vector<double>* gguf_file::find(std::string_view) const;
template const std::vector<bool>* gguf_file::find(std::string_view) const;
template const std::vector<std::string>* gguf_file::find(std::string_view) const;

void parse_gguf(std::span<const std::byte> bytes, const std::string& where, gguf_file& into) {
  into.name = where;
  gguf_reader from(bytes.first(std::min<std::size_t>(bytes.size(), most_gguf_metadata_bytes)), where);
  check_version(from, into);
  // The smallest tensor takes a name's length, a dimension, its size, type and offset; the smallest key one byte less.
  const auto tensor_count = from.count(most_tensors, 32, "the number of tensors");
  const auto key_count = from.count(most_keys, 13, "the number of metadata keys");
  read_metadata(from, key_count, into);
  std::vector<placed_tensor> tensors;
  for (std::uint64_t i = 0; i < tensor_count; ++i) tensors.push_back(read_tensor_info(from, where));
  const auto alignment = alignment_of(into);
  const auto data_at = std::min<std::uint64_t>(rounded_up(from.at(), alignment), bytes.size());
  place_tensors(tensors, bytes.subspan(data_at), alignment, into);
}

}  // namespace troupe
