#include "model/formats/gguf.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>

#include "base/error.hpp"

namespace troupe {
namespace {

constexpr std::uint64_t most_metadata_bytes = std::uint64_t{256} << 20;
constexpr std::uint64_t most_keys = 1 << 16;
constexpr std::uint64_t most_tensors = 1 << 20;
constexpr std::uint64_t most_elements = 1 << 24;
constexpr std::uint64_t most_key_bytes = 1 << 16;
constexpr std::uint64_t most_gguf_dimensions = 4;
constexpr std::uint64_t most_alignment = 1 << 16;

enum class value_type : std::uint32_t { u8, i8, u16, i16, u32, i32, f32, boolean, text, array, u64, i64, f64 };

constexpr std::array<std::string_view, 42> tensor_type_names = {
    "F32",        "F16",        "Q4_0",       "Q4_1",  "Q4_2",     "Q4_3",     "Q5_0",     "Q5_1",    "Q8_0",
    "Q8_1",       "Q2_K",       "Q3_K",       "Q4_K",  "Q5_K",     "Q6_K",     "Q8_K",     "IQ2_XXS", "IQ2_XS",
    "IQ3_XXS",    "IQ1_S",      "IQ4_NL",     "IQ3_S", "IQ2_S",    "IQ4_XS",   "I8",       "I16",     "I32",
    "I64",        "F64",        "IQ1_M",      "BF16",  "Q4_0_4_4", "Q4_0_4_8", "Q4_0_8_8", "TQ1_0",   "TQ2_0",
    "IQ4_NL_4_4", "IQ4_NL_4_8", "IQ4_NL_8_8", "MXFP4", "NVFP4",    "Q1_0"};

/// Reads forward and never past the end; messages say where it stood.
class gguf_cursor {
 public:
  gguf_cursor(std::span<const std::byte> bytes, const std::string& where) : bytes_(bytes), where_(where) {}

  std::size_t at() const { return at_; }
  std::size_t left() const { return bytes_.size() - at_; }

  template <class T>
  T number(std::string_view what) {
    T value;
    std::memcpy(&value, take(sizeof(T), what).data(), sizeof(T));
    return value;
  }

  std::string text(std::uint64_t most, std::string_view what) {
    const auto length = number<std::uint64_t>(what);
    if (length > most) refuse("{}: {} is {} bytes long, at most {} are allowed", where_, what, length, most);
    const auto bytes = take(length, what);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }

  /// A count of things that take `each` bytes or more: more than could follow is refused before anything is allocated.
  std::uint64_t count(std::uint64_t most, std::uint64_t each, std::string_view what) {
    const auto value = number<std::uint64_t>(what);
    if (value > most || value > left() / each)
      refuse("{}: says that {} counts {}, which the file cannot hold", where_, what, value);
    return value;
  }

 private:
  std::span<const std::byte> take(std::uint64_t size, std::string_view what) {
    if (size > left())
      refuse("{}: ends inside of {} (byte {} of {} readable): the file is cut off, copy it again", where_, what, at_,
             bytes_.size());
    const auto part = bytes_.subspan(at_, size);
    at_ += size;
    return part;
  }

  std::span<const std::byte> bytes_;
  const std::string& where_;
  std::size_t at_ = 0;
};

std::string label(std::string_view key) {
  return fmt::format("\"{}\"", key.substr(0, 200));
}

std::uint64_t width_of(value_type type, const std::string& where, const std::string& what) {
  switch (type) {
    case value_type::u8:
    case value_type::i8:
    case value_type::boolean:
      return 1;
    case value_type::u16:
    case value_type::i16:
      return 2;
    case value_type::u32:
    case value_type::i32:
    case value_type::f32:
      return 4;
    case value_type::u64:
    case value_type::i64:
    case value_type::f64:
    case value_type::text:
      return 8;
    case value_type::array:
      refuse("{}: {} is a list of lists, which is not supported", where, what);
  }
  refuse("{}: {} has the unknown value type {}", where, what, static_cast<std::uint32_t>(type));
}

std::int64_t read_integer(gguf_cursor& from, value_type type, const std::string& where, const std::string& what) {
  switch (type) {
    case value_type::u8:
      return from.number<std::uint8_t>(what);
    case value_type::i8:
      return from.number<std::int8_t>(what);
    case value_type::u16:
      return from.number<std::uint16_t>(what);
    case value_type::i16:
      return from.number<std::int16_t>(what);
    case value_type::u32:
      return from.number<std::uint32_t>(what);
    case value_type::i32:
      return from.number<std::int32_t>(what);
    case value_type::i64:
      return from.number<std::int64_t>(what);
    default:
      break;
  }
  const auto value = from.number<std::uint64_t>(what);
  if (value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
    refuse("{}: {} is {}, which is too large", where, what, value);
  return static_cast<std::int64_t>(value);
}

bool read_bool(gguf_cursor& from, const std::string& where, const std::string& what) {
  const auto value = from.number<std::uint8_t>(what);
  if (value > 1) refuse("{}: {} should be true or false, but is {}", where, what, value);
  return value == 1;
}

double read_double(gguf_cursor& from, value_type type, const std::string& what) {
  return type == value_type::f32 ? static_cast<double>(from.number<float>(what)) : from.number<double>(what);
}

template <class T, class Read>
std::vector<T> read_list(std::uint64_t count, const Read& read) {
  std::vector<T> all;
  all.reserve(count);
  for (std::uint64_t i = 0; i < count; ++i) all.push_back(read());
  return all;
}

gguf_value read_array(gguf_cursor& from, const std::string& where, const std::string& what) {
  const auto type = static_cast<value_type>(from.number<std::uint32_t>(what));
  const auto count = from.count(most_elements, width_of(type, where, what), what);
  if (type == value_type::f32 || type == value_type::f64)
    return read_list<double>(count, [&] { return read_double(from, type, what); });
  if (type == value_type::boolean) return read_list<bool>(count, [&] { return read_bool(from, where, what); });
  if (type == value_type::text)
    return read_list<std::string>(count, [&] { return from.text(most_metadata_bytes, what); });
  return read_list<std::int64_t>(count, [&] { return read_integer(from, type, where, what); });
}

gguf_value read_value(gguf_cursor& from, const std::string& where, const std::string& what) {
  const auto type = static_cast<value_type>(from.number<std::uint32_t>(what));
  if (type == value_type::array) return read_array(from, where, what);
  width_of(type, where, what);
  if (type == value_type::f32 || type == value_type::f64) return read_double(from, type, what);
  if (type == value_type::boolean) return read_bool(from, where, what);
  if (type == value_type::text) return from.text(most_metadata_bytes, what);
  return read_integer(from, type, where, what);
}

// ---- header, metadata, tensors ----

void read_version(gguf_cursor& from, const std::string& where, gguf_file& into) {
  if (from.left() < 24) refuse("{}: is too short for a GGUF file", where);
  if (from.number<std::uint32_t>("the magic") != 0x46554747) refuse("{}: does not begin with \"GGUF\"", where);
  into.version = from.number<std::uint32_t>("the version");
  if (into.version == 2 || into.version == 3) return;
  if ((into.version & 0xffff) == 0) refuse("{}: is big-endian: convert it to a little-endian GGUF file", where);
  refuse("{}: has the GGUF version {}, but 2 and 3 are supported: convert the model again", where, into.version);
}

void read_metadata(gguf_cursor& from, std::uint64_t count, const std::string& where, gguf_file& into) {
  for (std::uint64_t i = 0; i < count; ++i) {
    auto key = from.text(most_key_bytes, "a metadata key");
    auto value = read_value(from, where, label(key));
    if (!into.metadata.emplace(key, std::move(value)).second) refuse("{}: has the key {} twice", where, label(key));
  }
  into.metadata_bytes = from.at();
}

dtype tensor_type(std::uint32_t number, const std::string& name) {
  if (number < tensor_type_names.size())
    if (const auto type = dtype_from_name(tensor_type_names[number])) return *type;
  const auto type = number < tensor_type_names.size() ? std::string(tensor_type_names[number])
                                                      : fmt::format("with the number {}", number);
  refuse(
      "{}: has the type {}, but F32, F16, BF16, Q4_0 to Q8_0, Q2_K to Q6_K, IQ4_NL and IQ4_XS are supported: convert "
      "the model to one of these",
      name, type);
}

struct placed_tensor {
  std::string name;
  tensor_view view;
  std::uint64_t begin = 0;
  std::uint64_t size = 0;
};

placed_tensor read_tensor_info(gguf_cursor& from, const std::string& where) {
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

std::uint64_t alignment_of(const gguf_file& file, const std::string& where) {
  const auto alignment = file.get<std::int64_t>("general.alignment").value_or(32);
  if (alignment < 1 || alignment > static_cast<std::int64_t>(most_alignment) ||
      !std::has_single_bit(static_cast<std::uint64_t>(alignment)))
    refuse("{}: \"general.alignment\" is {}, but should be a power of two up to {}", where, alignment, most_alignment);
  return static_cast<std::uint64_t>(alignment);
}

void place_tensors(std::vector<placed_tensor>& tensors, std::span<const std::byte> data, std::uint64_t alignment,
                   const std::string& where, gguf_file& into) {
  std::stable_sort(tensors.begin(), tensors.end(), [](const auto& a, const auto& b) { return a.begin < b.begin; });
  std::uint64_t at = 0;
  for (auto& tensor : tensors) {
    const auto name = fmt::format("{}: tensor {}", where, label(tensor.name));
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

// ---- types of values, for messages and for the way out ----

template <class T>
constexpr std::string_view value_name = "";
template <>
constexpr std::string_view value_name<std::int64_t> = "an integer";
template <>
constexpr std::string_view value_name<double> = "a float";
template <>
constexpr std::string_view value_name<bool> = "true or false";
template <>
constexpr std::string_view value_name<std::string> = "a text";
template <class T>
constexpr std::string_view value_name<std::vector<T>> = "a list of another type";
template <>
constexpr std::string_view value_name<std::vector<std::int64_t>> = "a list of integers";
template <>
constexpr std::string_view value_name<std::vector<double>> = "a list of floats";
template <>
constexpr std::string_view value_name<std::vector<bool>> = "a list of true and false";
template <>
constexpr std::string_view value_name<std::vector<std::string>> = "a list of texts";

}  // namespace

template <class T>
std::optional<T> gguf_file::get(std::string_view key) const {
  const auto found = metadata.find(key);
  if (found == metadata.end()) return std::nullopt;
  if (const auto* value = std::get_if<T>(&found->second)) return *value;
  const auto held = std::visit([]<class V>(const V&) { return value_name<V>; }, found->second);
  refuse("{}: {} should be {}, but is {}", name, label(key), value_name<T>, held);
}

template std::optional<std::int64_t> gguf_file::get(std::string_view) const;
template std::optional<double> gguf_file::get(std::string_view) const;
template std::optional<bool> gguf_file::get(std::string_view) const;
template std::optional<std::string> gguf_file::get(std::string_view) const;
template std::optional<std::vector<std::int64_t>> gguf_file::get(std::string_view) const;
template std::optional<std::vector<double>> gguf_file::get(std::string_view) const;
template std::optional<std::vector<bool>> gguf_file::get(std::string_view) const;
template std::optional<std::vector<std::string>> gguf_file::get(std::string_view) const;

void parse_gguf(std::span<const std::byte> bytes, const std::string& where, gguf_file& into) {
  into.name = where;
  gguf_cursor from(bytes.first(std::min<std::size_t>(bytes.size(), most_metadata_bytes)), where);
  read_version(from, where, into);
  // The smallest tensor takes a name's length, a dimension, its size, type and offset; the smallest key one byte less.
  const auto tensor_count = from.count(most_tensors, 32, "the number of tensors");
  const auto key_count = from.count(most_keys, 13, "the number of metadata keys");
  read_metadata(from, key_count, where, into);
  std::vector<placed_tensor> tensors;
  for (std::uint64_t i = 0; i < tensor_count; ++i) tensors.push_back(read_tensor_info(from, where));
  const auto alignment = alignment_of(into, where);
  const auto data_at = std::min<std::uint64_t>((from.at() + alignment - 1) / alignment * alignment, bytes.size());
  place_tensors(tensors, bytes.subspan(data_at), alignment, where, into);
}

gguf_file open_gguf(const std::filesystem::path& path) {
  gguf_file file;
  file.tensors.files.emplace_back(path);
  parse_gguf(file.tensors.files.front().bytes(), path.string(), file);
  return file;
}

std::optional<gguf_file> find_gguf_metadata(const std::filesystem::path& model) {
  std::error_code ignored;
  if (!std::filesystem::is_directory(model, ignored)) return open_gguf(model);
  const auto file = model / "metadata.gguf";
  if (!std::filesystem::exists(file, ignored)) return std::nullopt;
  return open_gguf(file);
}

}  // namespace troupe
