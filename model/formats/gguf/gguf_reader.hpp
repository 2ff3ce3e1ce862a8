#pragma once
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

#include "model/formats/gguf/gguf.hpp"

namespace troupe::detail {

constexpr std::uint64_t most_gguf_metadata_bytes = std::uint64_t{256} << 20;

enum class gguf_type : std::uint32_t { u8, i8, u16, i16, u32, i32, f32, boolean, text, array, u64, i64, f64 };

/// Reads a GGUF file forward and never past its end. `part` is what messages call what is being read.
class gguf_reader {
 public:
  gguf_reader(std::span<const std::byte> bytes, const std::string& where) : bytes_(bytes), where_(where) {}

  std::size_t at() const { return at_; }
  std::size_t left() const { return bytes_.size() - at_; }

  template <class T>
  T number(std::string_view part) {
    T value;
    std::memcpy(&value, take(sizeof(T), part).data(), sizeof(T));
    return value;
  }
  std::string text(std::uint64_t most, std::string_view part);
  /// A count of things that take `each` bytes or more: more than could follow is refused before anything is allocated.
  std::uint64_t count(std::uint64_t most, std::uint64_t each, std::string_view part);
  /// A value of any type, its type first.
  gguf_value value(std::string_view part);

 private:
  std::span<const std::byte> take(std::uint64_t size, std::string_view part);
  gguf_type type(std::string_view part);
  template <class Make>
  gguf_value plain(gguf_type type, std::string_view part, const Make& make);
  std::int64_t integer(gguf_type type, std::string_view part);
  double real(gguf_type type, std::string_view part);
  bool boolean(std::string_view part);
  gguf_value list(std::string_view part);

  std::span<const std::byte> bytes_;
  const std::string& where_;
  std::size_t at_ = 0;
};

}  // namespace troupe::detail
