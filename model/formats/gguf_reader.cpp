#include "model/formats/gguf_reader.hpp"

#include <limits>

#include "base/error.hpp"

namespace troupe::detail {
namespace {

constexpr std::uint64_t most_elements = 1 << 24;

template <class T, class Read>
std::vector<T> read_list(std::uint64_t count, const Read& read) {
  std::vector<T> all;
  all.reserve(count);
  for (std::uint64_t i = 0; i < count; ++i) all.push_back(read());
  return all;
}

[[noreturn]] void refuse_type(gguf_type type, const std::string& where, std::string_view part) {
  refuse("{}: {} has the unknown value type {}", where, part, static_cast<std::uint32_t>(type));
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

gguf_value gguf_reader::value(std::string_view part) {
  const auto held = type(part);
  switch (held) {
    case gguf_type::f32:
    case gguf_type::f64:
      return real(held, part);
    case gguf_type::boolean:
      return boolean(part);
    case gguf_type::text:
      return text(most_gguf_metadata_bytes, part);
    case gguf_type::array:
      return list(part);
    default:
      return integer(held, part);
  }
}

gguf_value gguf_reader::list(std::string_view part) {
  const auto held = type(part);
  const auto length = count(most_elements, least_bytes(held, part), part);
  switch (held) {
    case gguf_type::f32:
    case gguf_type::f64:
      return read_list<double>(length, [&] { return real(held, part); });
    case gguf_type::boolean:
      return read_list<bool>(length, [&] { return boolean(part); });
    case gguf_type::text:
      return read_list<std::string>(length, [&] { return text(most_gguf_metadata_bytes, part); });
    default:
      return read_list<std::int64_t>(length, [&] { return integer(held, part); });
  }
}

/// What one element of a list takes at least.
std::uint64_t gguf_reader::least_bytes(gguf_type type, std::string_view part) const {
  switch (type) {
    case gguf_type::u8:
    case gguf_type::i8:
    case gguf_type::boolean:
      return 1;
    case gguf_type::u16:
    case gguf_type::i16:
      return 2;
    case gguf_type::u32:
    case gguf_type::i32:
    case gguf_type::f32:
      return 4;
    case gguf_type::u64:
    case gguf_type::i64:
    case gguf_type::f64:
    case gguf_type::text:
      return 8;
    case gguf_type::array:
      refuse("{}: {} is a list of lists, which is not supported", where_, part);
  }
  refuse_type(type, where_, part);
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
    case gguf_type::u64: {
      const auto value = number<std::uint64_t>(part);
      if (value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
        refuse("{}: {} is {}, which is too large", where_, part, value);
      return static_cast<std::int64_t>(value);
    }
    default:
      refuse_type(type, where_, part);
  }
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
