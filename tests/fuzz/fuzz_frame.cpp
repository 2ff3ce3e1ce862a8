// Bytes from a socket: the header, then a body as each kind of field that messages have. What is let in says again what
// came in.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "transport/zmq/codec.hpp"
#include "transport/zmq/frame.hpp"
#include "transport/zmq/greeting.hpp"

namespace {

enum class shade : std::uint8_t { light, dark };
constexpr shade last_enumerator(shade) {
  return shade::dark;
}

struct leaf {
  troupe::strong_id<struct leaf_tag, std::int32_t> id;
  std::string name;
  shade how = shade::light;

  auto fields() { return std::tie(id, name, how); }
};

struct everything {
  bool yes = false;
  float real = 0;
  std::vector<leaf> leaves;
  std::vector<std::vector<std::string>> names;
  std::vector<std::uint64_t> numbers;
  std::optional<leaf> maybe;
  std::pair<std::int16_t, std::optional<bool>> both;
  std::array<shade, 3> shades{};
  std::vector<everything> children;

  auto fields() { return std::tie(yes, real, leaves, names, numbers, maybe, both, shades, children); }
};

template <class T>
void try_decode(std::span<const std::byte> bytes) {
  const auto message = troupe::decode<T>(bytes);
  if (!message) return;
  const auto again = troupe::encode(*message);
  if (!std::equal(again.begin(), again.end(), bytes.begin(), bytes.end())) __builtin_trap();
}

void try_header(std::span<const std::byte> bytes) {
  const troupe::frame_limits limits;
  const auto header = troupe::read_header(bytes, limits);
  if (!header) return;
  if (header->body_bytes > limits.body_bytes || header->attachment_bytes > limits.attachment_bytes) __builtin_trap();
  std::array<std::byte, troupe::frame_header::size> again{};
  troupe::write_header(*header, again);
  if (!std::equal(again.begin(), again.end(), bytes.begin(), bytes.end())) __builtin_trap();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  try_header(bytes);
  try_header(bytes.first(std::min(bytes.size(), troupe::frame_header::size)));
  try_decode<everything>(bytes);
  try_decode<troupe::detail::greeting>(bytes);
  try_decode<troupe::detail::welcome>(bytes);
  try_decode<troupe::detail::confirmation>(bytes);
  return 0;
}
