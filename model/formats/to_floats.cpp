#include <cstring>

#include "base/error.hpp"
#include "base/half.hpp"
#include "model/formats/gguf_blocks.hpp"
#include "model/formats/tensor.hpp"

namespace troupe {
namespace {

// Files promise no alignment, so values are copied out; compilers turn these into plain loads.
std::uint16_t load_u16(const std::byte* from) {
  std::uint16_t value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

void from_f16(const std::byte* __restrict from, std::int64_t count, float* __restrict to) {
  for (std::int64_t i = 0; i < count; ++i) to[i] = f16_to_f32(load_u16(from + 2 * i));
}

void from_bf16(const std::byte* __restrict from, std::int64_t count, float* __restrict to) {
  for (std::int64_t i = 0; i < count; ++i) to[i] = bf16_to_f32(load_u16(from + 2 * i));
}

}  // namespace

void to_floats(dtype type, const std::byte* from, std::int64_t count, float* to) {
  if (count <= 0) return;
  switch (type) {
    case dtype::f32:
      std::memcpy(to, from, static_cast<std::size_t>(count) * sizeof(float));
      return;
    case dtype::f16:
      return from_f16(from, count, to);
    case dtype::bf16:
      return from_bf16(from, count, to);
    case dtype::i8:
    case dtype::u8:
    case dtype::i32:
      refuse("a tensor of the type {} cannot be read as floats", name_of(type));
    default:
      return detail::blocks_to_floats(type, from, count, to);
  }
}

}  // namespace troupe
