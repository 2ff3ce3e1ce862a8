#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/mapped_file.hpp"

namespace troupe {

/// How a tensor's elements lie in a file. From q8_0 on: GGUF's blocks of 32 or 256 along the last dimension
/// (to_floats.cpp reads them).
enum class dtype : std::uint8_t {
  f32,
  f16,
  bf16,
  i8,
  u8,
  i32,
  f8_e4m3,  ///< a sign, four bits of exponent, three of mantissa; no infinities
  q8_0,
  q4_0,
  q4_1,
  q5_0,
  q5_1,
  q2_k,
  q3_k,
  q4_k,
  q5_k,
  q6_k,
  iq4_nl,
  iq4_xs,
  mxfp4
};

std::string_view name_of(dtype type);
/// The type that files name so; none if it is not read here.
std::optional<dtype> dtype_from_name(std::string_view name);

/// What belongs together in a file: one element, or a block of GGUF's.
struct block_shape {
  std::int64_t elements;
  std::int64_t bytes;
};
block_shape block_of(dtype type);

/// A tensor inside a mapped file: row-major, the last dimension contiguous.
struct tensor_view {
  dtype type = dtype::f32;
  std::vector<std::int64_t> shape;
  std::span<const std::byte> data;

  std::int64_t elements() const;
};

/// Bytes that a tensor of this type and shape takes; throws input_error on overflow, or where a row is no whole
/// number of blocks. `where` names file and tensor for the message.
std::size_t byte_size(dtype type, std::span<const std::int64_t> shape, std::string_view where);

/// "[2, 3]", for messages.
std::string text_of(std::span<const std::int64_t> shape);

/// `count` elements that start at `from` as floats; of blocks whole ones. Integers are not read.
void to_floats(dtype type, const std::byte* from, std::int64_t count, float* to);
/// Likewise of Q4_1, Q4_K and MXFP4, but as they are: an element is mid + scale * (z - 8), of MXFP4 scale * e2m1[z],
/// with a scale and a mid for each 32.
void to_nibbles(dtype type, const std::byte* from, std::int64_t count, std::uint8_t* z, float* scales, float* mids);

/// Named tensors, and the mapped files that they point into.
struct tensor_set {
  std::vector<mapped_file> files;
  std::map<std::string, tensor_view, std::less<>> tensors;
  std::map<std::string, std::string> metadata;
  std::map<std::string, std::string, std::less<>> unread;  ///< tensors of types that are not read here: name to type

  const tensor_view* find(std::string_view name) const;
  /// The name of the file that holds the view's bytes.
  std::string_view file_of(const tensor_view& tensor) const;
};

}  // namespace troupe
