#include "model/formats/gguf/gguf_reader.hpp"

#include <array>
#include <limits>

#include "base/error.hpp"
#include "base/to_size.hpp"

namespace troupe::detail {
namespace {

constexpr std::uint64_t most_elements = 1 << 24;

/// What a value of each gguf_type takes at least; a list cannot be an element.
constexpr std::array<std::uint64_t, 13> least_value_bytes = {1, 1, 2, 2, 4, 4, 4, 1, 8, 0, 8, 8, 8};

template <class Read>
auto read_list(std::uint64_t count, const Read& read) {
  std::vector<decltype(read())> all;
  all.reserve(count);
  for (std::uint64_t i = 0; i < count; ++i) all.push_back(read());
  return all;
}

}  // namespace

std::span<const std::byte> gguf_reader::take(std::uint64_t size, std::string_view part) {
  if (size > left())
    refuse("{}: ends inside of {} (byte {} of {} readable): the file is cut off, copy it again", where_, part, at_,
           bytes_.size());
  const auto taken = bytes_.subspan(at_, size);
  at_ += size;
  return taken;
}

std::string gguf_reader::text(std::uint64_t most, std::string_view part) {
  const auto length = number<std::uint64_t>(part);
  if (length > most) refuse("{}: {} is {} bytes long, at most {} are allowed", where_, part, length, most);
  const auto bytes = take(length, part);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::uint64_t gguf_reader::count(std::uint64_t most, std::uint64_t each, std::string_view part) {
  const auto value = number<std::uint64_t>(part);
  if (value > most || value > left() / each)
    refuse("{}: says that {} counts {}, which the file cannot hold", where_, part, value);
  return value;
}

/// What `make` makes of a function that reads one value of this type, which is no list.
template <class Make>
gguf_value gguf_reader::plain(gguf_type type, std::string_view part, const Make& make) {
  switch (type) {
    case gguf_type::f32:
    case gguf_type::f64:
      return make([&] { return real(type, part); });
    case gguf_type::boolean:
      return make([&] { return boolean(part); });
    case gguf_type::text:
      return make([&] { return text(most_gguf_metadata_bytes, part); });
    default:
      return make([&] { return integer(type, part); });
  }
}

gguf_value gguf_reader::value(std::string_view part) {
  const auto held = type(part);
  if (held == gguf_type::array) return list(part);
  return plain(held, part, [](const auto& read) { return gguf_value(read()); });
}

gguf_value gguf_reader::list(std::string_view part) {
  const auto held = type(part);
  if (held == gguf_type::array) refuse("{}: {} is a list of lists, which is not supported", where_, part);
  const auto length = count(most_elements, least_value_bytes[to_size(held)], part);
  return plain(held, part, [&](const auto& read) { return gguf_value(read_list(length, read)); });
}

gguf_type gguf_reader::type(std::string_view part) {
  const auto type = number<std::uint32_t>(part);
  if (type >= least_value_bytes.size()) refuse("{}: {} has the unknown value type {}", where_, part, type);
  return static_cast<gguf_type>(type);
}

std::int64_t gguf_reader::integer(gguf_type type, std::string_view part) {
  switch (type) {
    case gguf_type::u8:
      return number<std::uint8_t>(part);
    case gguf_type::i8:
      return number<std::int8_t>(part);
    case gguf_type::u16:
      return number<std::uint16_t>(part);
    case gguf_type::i16:
      return number<std::int16_t>(part);
    case gguf_type::u32:
      return number<std::uint32_t>(part);
    case gguf_type::i32:
      return number<std::int32_t>(part);
    case gguf_type::i64:
      return number<std::int64_t>(part);
    default:
      break;
  }
  const auto value = number<std::uint64_t>(part);
  if (value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
    refuse("{}: {} is {}, which is too large", where_, part, value);
  return static_cast<std::int64_t>(value);
}

double gguf_reader::real(gguf_type type, std::string_view part) {
  return type == gguf_type::f32 ? static_cast<double>(number<float>(part)) : number<double>(part);
}

bool gguf_reader::boolean(std::string_view part) {
  const auto value = number<std::uint8_t>(part);
  if (value > 1) refuse("{}: {} should be true or false, but is {}", where_, part, value);
  return value == 1;
}

}  // namespace troupe::detail
