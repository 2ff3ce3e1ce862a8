#include "model/formats/tensor.hpp"

#include <functional>
#include <limits>

#include <fmt/ranges.h>

#include "base/error.hpp"

namespace troupe {
namespace {

struct block_shape {
  std::int64_t elements;
  std::int64_t bytes;
};

block_shape block_of(dtype type) {
  switch (type) {
    case dtype::f32:
    case dtype::i32:
      return {1, 4};
    case dtype::f16:
    case dtype::bf16:
      return {1, 2};
    case dtype::i8:
    case dtype::u8:
      return {1, 1};
    case dtype::q8_0:
      return {32, 34};
    case dtype::q4_0:
      return {32, 18};
  }
  refuse("a tensor type with the number {} is unknown", static_cast<int>(type));
}

}  // namespace

std::string_view name_of(dtype type) {
  switch (type) {
    case dtype::f32:
      return "F32";
    case dtype::f16:
      return "F16";
    case dtype::bf16:
      return "BF16";
    case dtype::i8:
      return "I8";
    case dtype::u8:
      return "U8";
    case dtype::i32:
      return "I32";
    case dtype::q8_0:
      return "Q8_0";
    case dtype::q4_0:
      return "Q4_0";
  }
  return "unknown";
}

std::int64_t tensor_view::elements() const {
  std::int64_t product = 1;
  for (const auto size : shape) product *= size;
  return product;
}

std::string text_of(std::span<const std::int64_t> shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

std::size_t byte_size(dtype type, std::span<const std::int64_t> shape, std::string_view where) {
  const auto block = block_of(type);
  if (block.elements > 1 && (shape.empty() || shape.back() % block.elements != 0))
    refuse("{}: rows of {} come in blocks of {}, but the shape is {}", where, name_of(type), block.elements,
           text_of(shape));
  // Zero sizes count as one here: the order of the sizes must not decide whether the product overflows.
  std::int64_t product = 1;
  bool empty = false;
  for (const auto size : shape) {
    if (size < 0) refuse("{}: the shape {} has a negative size", where, text_of(shape));
    empty = empty || size == 0;
    if (size > 0 && __builtin_mul_overflow(product, size, &product))
      refuse("{}: the shape {} is larger than any file", where, text_of(shape));
  }
  if (empty) return 0;
  std::int64_t bytes = 0;
  if (__builtin_mul_overflow(product / block.elements, block.bytes, &bytes))
    refuse("{}: the shape {} is larger than any file", where, text_of(shape));
  return static_cast<std::size_t>(bytes);
}

const tensor_view* tensor_set::find(std::string_view name) const {
  const auto found = tensors.find(name);
  return found == tensors.end() ? nullptr : &found->second;
}

std::string_view tensor_set::file_of(const tensor_view& tensor) const {
  const std::less_equal<const std::byte*> before;
  for (const auto& file : files) {
    const auto bytes = file.bytes();
    if (before(bytes.data(), tensor.data.data()) && before(tensor.data.data(), bytes.data() + bytes.size()))
      return file.name();
  }
  return "memory";
}

}  // namespace troupe
