// A message's fields as bytes: cereal's binary form, little-endian, with one rule added: no length is believed before
// it is compared with the bytes that are left. The only place that knows cereal.
//
// Messages are `described` structs (base/fields.hpp) of numbers, bools, enums, strong ids, strings, vectors, arrays,
// optionals, pairs and other described structs.
//
// What a decode may cost is bounded by its input: a vector reserves no more elements than the bytes that are left could
// hold, each at its least size. No message holds others of its own type, so nesting ends with the types.
//
// Heavy: for .cpp files.
#pragma once
#include <array>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <cereal/cereal.hpp>

#include "base/fields.hpp"
#include "base/result.hpp"
#include "base/strong_id.hpp"
#include "base/to_size.hpp"

namespace troupe {

enum class codec_error : std::uint8_t {
  too_short,     ///< ends before its fields do
  wrong_length,  ///< a vector or string that cannot fit into what is left
  wrong_value,   ///< a bool that is neither 0 nor 1, an enum beyond its last enumerator
  trailing_bytes,
  no_memory
};
constexpr std::string_view name_of(codec_error error) {
  constexpr std::string_view names[] = {"ends too early", "holds a length that cannot be",
                                        "holds a value that cannot be", "goes on after its end",
                                        "needs too much memory"};
  return names[to_size(error)];
}

template <described T>
std::vector<std::byte> encode(const T& message);
/// Never throws.
template <described T>
result<T, codec_error> decode(std::span<const std::byte> bytes);

namespace detail {

static_assert(std::endian::native == std::endian::little, "the wire's byte order is this machine's");

struct codec_failure {
  codec_error error;
};

class codec_writer : public cereal::OutputArchive<codec_writer, cereal::AllowEmptyClassElision> {
 public:
  explicit codec_writer(std::vector<std::byte>& to)
      : cereal::OutputArchive<codec_writer, cereal::AllowEmptyClassElision>(this), to_(to) {}
  void write(const void* data, std::size_t bytes) {
    const auto* from = static_cast<const std::byte*>(data);
    to_.insert(to_.end(), from, from + bytes);
  }

 private:
  std::vector<std::byte>& to_;
};

class codec_reader : public cereal::InputArchive<codec_reader, cereal::AllowEmptyClassElision> {
 public:
  explicit codec_reader(std::span<const std::byte> bytes)
      : cereal::InputArchive<codec_reader, cereal::AllowEmptyClassElision>(this), left_(bytes) {}
  void read(void* to, std::size_t bytes) {
    if (bytes > left_.size()) throw codec_failure{codec_error::too_short};
    if (bytes != 0) std::memcpy(to, left_.data(), bytes);
    left_ = left_.subspan(bytes);
  }
  /// A count of things that take `bytes_each` at least.
  std::size_t read_count(std::size_t bytes_each) {
    std::uint64_t count = 0;
    read(&count, sizeof count);
    if (count > left_.size() / (bytes_each > 0 ? bytes_each : 1)) throw codec_failure{codec_error::wrong_length};
    return to_size(count);
  }
  std::size_t left() const { return left_.size(); }

 private:
  std::span<const std::byte> left_;
};

template <class T>
struct is_plain : std::bool_constant<std::is_arithmetic_v<T> && !std::is_same_v<T, bool>> {};
template <class Tag, class Value>
struct is_plain<strong_id<Tag, Value>> : std::bool_constant<is_plain<Value>::value> {
  static_assert(sizeof(strong_id<Tag, Value>) == sizeof(Value) && std::is_trivially_copyable_v<strong_id<Tag, Value>>);
};

/// Values whose bytes in memory are their bytes on the wire.
template <class T>
concept plain = is_plain<T>::value;

/// Enums may say which enumerator is their last; then no other value is let in.
template <class T>
concept bounded_enum = std::is_enum_v<T> && requires(T value) {
  { last_enumerator(value) } -> std::same_as<T>;
};

// Enums come first, as cereal would otherwise read them its own way.
template <class T>
void save_one(codec_writer& to, const T& value) {
  if constexpr (std::is_enum_v<T>)
    to(static_cast<std::underlying_type_t<T>>(value));
  else
    to(value);
}
template <class T>
void load_one(codec_reader& from, T& value) {
  if constexpr (std::is_enum_v<T>) {
    std::underlying_type_t<T> number{};
    from(number);
    if constexpr (bounded_enum<T>) {
      if (number < 0 || number > static_cast<std::underlying_type_t<T>>(last_enumerator(T{})))
        throw codec_failure{codec_error::wrong_value};
    }
    value = static_cast<T>(number);
  } else {
    from(value);
  }
}

/// What any T takes on the wire at least. Strings and vectors: their count.
template <class T>
struct least {
  static std::size_t bytes() {
    if constexpr (described<T>) {
      return least<decltype(std::declval<T&>().fields())>::bytes();
    } else if constexpr (std::is_enum_v<T> || plain<T>) {
      return sizeof(T);
    } else {
      return sizeof(std::uint64_t);
    }
  }
};
template <>
struct least<bool> {
  static std::size_t bytes() { return 1; }
};
template <class T>
struct least<std::optional<T>> {
  static std::size_t bytes() { return 1; }
};
template <class T, std::size_t Count>
struct least<std::array<T, Count>> {
  static std::size_t bytes() { return Count * least<T>::bytes(); }
};
template <class First, class Second>
struct least<std::pair<First, Second>> {
  static std::size_t bytes() { return least<First>::bytes() + least<Second>::bytes(); }
};
template <class... Fields>
struct least<std::tuple<Fields&...>> {
  static std::size_t bytes() { return (std::size_t{0} + ... + least<Fields>::bytes()); }
};

// cereal finds these by their names.
template <plain T>
void save(codec_writer& to, const T& value) {
  to.write(&value, sizeof value);
}
template <plain T>
void load(codec_reader& from, T& value) {
  from.read(&value, sizeof value);
}

template <std::same_as<bool> T>
void save(codec_writer& to, const T& value) {
  const std::uint8_t byte = value ? 1 : 0;
  to.write(&byte, 1);
}
template <std::same_as<bool> T>
void load(codec_reader& from, T& value) {
  std::uint8_t byte = 0;
  from.read(&byte, 1);
  if (byte > 1) throw codec_failure{codec_error::wrong_value};
  value = byte == 1;
}

inline void save(codec_writer& to, const std::string& text) {
  const std::uint64_t count = text.size();
  to.write(&count, sizeof count);
  to.write(text.data(), text.size());
}
inline void load(codec_reader& from, std::string& text) {
  text.resize(from.read_count(1));
  from.read(text.data(), text.size());
}

template <class T>
void save(codec_writer& to, const std::vector<T>& values) {
  const std::uint64_t count = values.size();
  to.write(&count, sizeof count);
  if constexpr (plain<T>)
    to.write(values.data(), values.size() * sizeof(T));
  else
    for (const T& value : values) save_one(to, value);
}
template <class T>
void load(codec_reader& from, std::vector<T>& values) {
  static_assert(!std::is_same_v<T, bool>, "std::vector<bool> has no elements to refer to");
  values.clear();
  if constexpr (plain<T>) {
    values.resize(from.read_count(sizeof(T)));
    from.read(values.data(), values.size() * sizeof(T));
  } else {
    const std::size_t count = from.read_count(least<T>::bytes());
    values.reserve(count);
    for (std::size_t i = 0; i < count; ++i) load_one(from, values.emplace_back());
  }
}

template <class T, std::size_t Count>
void save(codec_writer& to, const std::array<T, Count>& values) {
  for (const T& value : values) save_one(to, value);
}
template <class T, std::size_t Count>
void load(codec_reader& from, std::array<T, Count>& values) {
  for (T& value : values) load_one(from, value);
}

template <class T>
void save(codec_writer& to, const std::optional<T>& value) {
  to(value.has_value());
  if (value) save_one(to, *value);
}
template <class T>
void load(codec_reader& from, std::optional<T>& value) {
  bool there = false;
  from(there);
  value.reset();
  if (there) load_one(from, value.emplace());
}

template <class First, class Second>
void save(codec_writer& to, const std::pair<First, Second>& value) {
  save_one(to, value.first);
  save_one(to, value.second);
}
template <class First, class Second>
void load(codec_reader& from, std::pair<First, Second>& value) {
  load_one(from, value.first);
  load_one(from, value.second);
}

template <described T>
void save(codec_writer& to, const T& message) {
  std::apply([&](const auto&... fields) { (save_one(to, fields), ...); }, fields_of(message));
}
template <described T>
void load(codec_reader& from, T& message) {
  std::apply([&](auto&... fields) { (load_one(from, fields), ...); }, message.fields());
}

}  // namespace detail

template <described T>
std::vector<std::byte> encode(const T& message) {
  std::vector<std::byte> bytes;
  detail::codec_writer writer(bytes);
  writer(message);
  return bytes;
}

template <described T>
result<T, codec_error> decode(std::span<const std::byte> bytes) {
  try {
    result<T, codec_error> message{T{}};
    detail::codec_reader reader(bytes);
    reader(message.value());
    if (reader.left() > 0) return codec_error::trailing_bytes;
    return message;
  } catch (const detail::codec_failure& failure) {
    return failure.error;
  } catch (const std::exception&) {
    return codec_error::no_memory;
  }
}

}  // namespace troupe
