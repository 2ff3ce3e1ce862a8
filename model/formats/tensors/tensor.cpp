#include "model/formats/tensors/tensor.hpp"

#include <array>
#include <functional>

#include <fmt/ranges.h>

#include "base/error.hpp"
#include "base/to_size.hpp"

namespace troupe {
namespace {

struct type_facts {
  std::string_view name;
  block_shape block;
};

/// In the order of dtype.
constexpr std::array<type_facts, 20> facts = {
    {{"F32", {1, 4}},      {"F16", {1, 2}},      {"BF16", {1, 2}},     {"I8", {1, 1}},         {"U8", {1, 1}},
     {"I32", {1, 4}},      {"F8_E4M3", {1, 1}},  {"Q8_0", {32, 34}},   {"Q4_0", {32, 18}},     {"Q4_1", {32, 20}},
     {"Q5_0", {32, 22}},   {"Q5_1", {32, 24}},   {"Q2_K", {256, 84}},  {"Q3_K", {256, 110}},   {"Q4_K", {256, 144}},
     {"Q5_K", {256, 176}}, {"Q6_K", {256, 210}}, {"IQ4_NL", {32, 18}}, {"IQ4_XS", {256, 136}}, {"MXFP4", {32, 17}}}};

}  // namespace

std::string_view name_of(dtype type) {
  return facts.at(to_size(type)).name;
}

std::optional<dtype> dtype_from_name(std::string_view name) {
  for (std::size_t i = 0; i < facts.size(); ++i)
    if (facts[i].name == name) return static_cast<dtype>(i);
  return std::nullopt;
}

block_shape block_of(dtype type) {
  return facts.at(to_size(type)).block;
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
  return to_size(bytes);
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
